/// The only source of chance.
pub trait Random: Send + Sync {
    /// 64 uniform bits.
    fn next_u64(&self) -> u64;

    /// A name that no other call gets: 128 bits in lower-case hex.
    fn token(&self) -> String {
        format!("{:016x}{:016x}", self.next_u64(), self.next_u64())
    }
}
