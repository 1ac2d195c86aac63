use super::*;

#[test]
fn hashes_are_those_of_the_standards() {
    let empty = Algorithm::ALL.map(|algorithm| Digest::of(algorithm, b"").to_string());
    assert_eq!(empty[0], "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
    assert_eq!(empty[1], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

#[test]
fn bytes_may_be_added_in_pieces() {
    let bytes: Vec<u8> = (0..100_000_u32).map(|index| (index % 251).to_le_bytes()[0]).collect();
    for algorithm in Algorithm::ALL {
        let mut hasher = Hasher::new(algorithm);
        bytes.chunks(777).for_each(|piece| hasher.add(piece));
        assert_eq!(hasher.finish(), Digest::of(algorithm, &bytes));
    }
}
