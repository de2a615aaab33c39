use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;

use super::*;

fn write_key(dir: &Path, key: &str) -> PathBuf {
    let file = dir.join("key");
    std::fs::write(&file, key).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    file
}

fn source(file: Option<&Path>, value: Option<&str>) -> SetKey {
    SetKey { file: file.map(Path::to_owned), value: value.map(SecretText::new) }
}

#[test]
fn a_file_goes_before_a_value_and_no_error_shows_a_key() {
    let dir = TempDir::new().unwrap();
    let file = write_key(dir.path(), "hush hush");
    for source in [source(Some(&file), Some("good")), source(None, Some("hush hush"))] {
        let error = source.load().unwrap_err();
        assert_eq!(error.exit, Exit::Configuration);
        assert!(!format!("{error:?}{source:?}").contains("hush"), "{error:?}");
    }
    assert_eq!(source(None, None).load().unwrap_err().exit, Exit::Configuration);
    assert!(source(None, Some("good")).load().is_ok());
    assert!(source(Some(dir.path()), None).load().unwrap_err().render().contains("regular file"));
}

#[tokio::test]
async fn a_file_is_read_again_and_a_value_cannot_have_changed() {
    let dir = TempDir::new().unwrap();
    let file = write_key(dir.path(), "first-key");
    let in_file = source(Some(&file), Some("value-key"));
    assert!(KeySource::load(&in_file).await.unwrap().is_some());
    for broken in ["", "two words"] {
        write_key(dir.path(), broken);
        let trouble = KeySource::load(&in_file).await.unwrap_err();
        assert!(trouble.to_string().contains("holds no usable key"), "{trouble}");
    }
    assert!(KeySource::load(&source(None, Some("value-key"))).await.unwrap().is_none());
}
