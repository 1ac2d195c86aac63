use super::*;

#[test]
fn every_way_is_reported_in_words() {
    let direct = Access::Direct { unit: 4096, alignment: 512, is_reported: true };
    assert_eq!(
        direct.explain(),
        "past the page cache (O_DIRECT), in multiples of 4096 bytes, as the filesystem reports"
    );
    let buffered = |why, uncached| Access::Buffered { why, uncached }.explain();
    assert_eq!(buffered(WhyBuffered::InMemory, false), "through the page cache: the filesystem is in memory");
    assert!(buffered(WhyBuffered::Refused(Errno::INVAL), true).starts_with(
        "through the page cache, whose pages leave it at once (RWF_DONTCACHE): opening the file with O_DIRECT failed"
    ));
}
