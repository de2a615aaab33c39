use super::*;

#[test]
fn a_call_is_read_with_its_file_data_and_offset() {
    let line = r#"7 pwrite64(10</d/l.db-wal>, "\0a\"\\\n\0011\377", 8, 32) = 8"#;
    let expected = Call {
        began: 0,
        ended: 0,
        name: "pwrite64".to_owned(),
        files: vec!["/d/l.db-wal".to_owned()],
        data: vec![b"\0a\"\\\n\x011\xff".to_vec()],
        last_number: Some(32),
        result: 8,
    };
    assert_eq!(parse(line), [expected]);
}

#[test]
fn a_call_that_others_interrupt_has_two_lines() {
    let trace = "\
7 fsync(10</d/x (a)> <unfinished ...>
8   recvfrom(3<socket:[1]>,  <unfinished ...>
7 <... fsync resumed>)              = 0
8 <... recvfrom resumed>\"GET = 3\\r\\n\", 99, 0, NULL, NULL) = 9
9 +++ exited with 0 +++
8 --- SIGTERM {si_signo=SIGTERM} ---
7 fdatasync(10</d/x> <unfinished ...>";
    let calls = parse(trace);
    let lines: Vec<_> = calls.iter().map(|call| (call.began, call.ended)).collect();
    // The last one never ended.
    assert_eq!(lines, [(0, 2), (1, 3)]);
    assert!(calls[0].syncs("/d/x (a)") && !calls[0].syncs("/d/x"));
    assert_eq!(calls[1].bytes(), b"GET = 3\r\n");
}

#[test]
fn failures_and_several_buffers_are_read() {
    let trace = "\
7 fsync(10</d/x>) = -1 EIO (Input/output error) (INJECTED)
7 writev(3<socket:[1]>, [{iov_base=\"ab\", iov_len=2}, {iov_base=\"c\", iov_len=1}], 2) = 3
7 linkat(AT_FDCWD</w>, \"/d/a#1\", AT_FDCWD</w>, \"/d/a\", 0) = 0
7 exit_group(0) = ?";
    let calls = parse(trace);
    assert_eq!((calls.len(), calls[0].result), (3, -1));
    assert!(!calls[0].syncs("/d/x"), "a failed sync makes nothing durable");
    assert_eq!(calls[1].bytes(), b"abc");
    assert_eq!(calls[2].data, [b"/d/a#1".to_vec(), b"/d/a".to_vec()]);
}

#[test]
#[should_panic(expected = "data is written down whole")]
fn data_that_is_cut_is_not_judged() {
    parse(r#"7 write(3</d/x>, "ab"..., 900) = 900"#);
}
