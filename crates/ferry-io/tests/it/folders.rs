//! Operations of a folder on its entries: results and refusals.

use std::collections::BTreeSet;

use ferry_io::{Dir, Errno, Error, FileKind, OpenHow, Operation, Time, Times, for_each};

use super::place::{errno, everywhere, name, pattern};

/// All names, listed with fresh cookies each time.
async fn names_of(folder: &Dir) -> Result<Vec<Vec<u8>>, Error> {
    let mut names = Vec::new();
    let mut listing = folder.list(None).await?;
    loop {
        names.extend(listing.entries.iter().map(|entry| entry.name.as_bytes().to_vec()));
        match listing.next {
            None => return Ok(names),
            Some(next) => listing = folder.list(Some(next)).await?,
        }
    }
}

#[test]
fn a_large_folder_is_listed_whole_and_each_name_once() {
    everywhere(|place| {
        let expected: BTreeSet<Vec<u8>> = (0..5000).map(|i| format!("entry {i}").into_bytes()).collect();
        let found: Result<_, Error> = place.run(async |_, folder| {
            folder.make_dir(&name("large"), 0o755).await?;
            let large = folder.open_dir(&name("large")).await?;
            for_each(64, &expected, async |entry| {
                large.make_node(&name(entry), FileKind::Fifo, 0o600, 0).await
            })
            .await?;
            let (again, stat, first) = folder.enter(&name("large"), None).await?;
            assert_eq!(stat.kind, FileKind::Directory);
            assert!(first.next.is_some(), "it takes several chunks");
            assert!(first.entries.iter().all(|entry| entry.kind == Some(FileKind::Fifo)));
            let mut rest = Vec::new();
            let mut listing = again.list(None).await?;
            while !listing.entries.is_empty() {
                rest.extend(listing.entries.iter().map(|entry| entry.name.as_bytes().to_vec()));
                listing = again.list(None).await?;
            }
            let entered = first.entries.iter().map(|entry| entry.name.as_bytes().to_vec()).chain(rest);
            let entered: Vec<_> = entered.collect();
            assert_eq!(entered.len(), 5000, "by the descriptor's position");
            // A second listing, from a cookie in the middle.
            let middle = again.list(first.next).await?;
            assert_eq!(middle.entries[0].name.as_bytes(), entered[first.entries.len()]);
            names_of(&folder.open_dir(&name("large")).await?).await
        });
        let found = found.expect("it is listed");
        assert_eq!(found.len(), 5000);
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
    });
}

#[test]
fn entries_that_are_examined_together_have_their_own_facts_and_errors() {
    everywhere(|place| {
        place.make_file("file", b"bytes");
        let done: Result<_, Error> = place.run(async |_, folder| {
            folder.make_dir(&name("sub"), 0o755).await?;
            folder.symlink(&name("link"), c"file".to_owned()).await?;
            let file = folder.open(&name("file"), OpenHow::read()).await?;
            // Some filesystems have no attributes of users.
            let has_xattr = file.set_xattr(c"user.ferry", b"value").await.is_ok();
            let names = ["file", "none", "sub", "link"].map(name);
            let found = folder.examine(names.to_vec(), true).await?;
            assert_eq!(found.len(), names.len());
            for (entry, one) in names.iter().zip(&found) {
                let Ok(facts) = one else {
                    assert_eq!((entry, one.as_ref().err()), (&name("none"), Some(&Errno::NOENT)));
                    continue;
                };
                assert_eq!(facts.xattrs, Some(folder.entry_xattrs(entry).await?), "{entry:?}");
                let stat = folder.stat_entry(entry, false).await?;
                assert_eq!((facts.stat.inode, facts.stat.kind), (stat.inode, stat.kind));
                let text = (stat.kind == FileKind::Symlink).then_some(&b"file"[..]);
                assert_eq!(facts.text.as_deref(), text, "{entry:?}");
            }
            if has_xattr && let Ok(facts) = &found[0] {
                assert!(facts.xattrs.as_ref().is_some_and(|found| !found.is_empty()));
            }
            let plain = folder.examine(vec![name("link")], false).await?;
            assert!(matches!(&plain[..], [Ok(facts)] if facts.text.is_none() && facts.xattrs.is_none()));
            Ok(())
        });
        done.expect("they are examined");
    });
}

#[test]
fn entries_that_are_examined_together_count_as_an_operation_of_their_own() {
    everywhere(|place| {
        place.make_file("file", b"bytes");
        let names = vec![name("file"), name("none")];
        let (found, stats) = place.run_with(&place.options(), async |_, folder| {
            folder.examine(names, true).await.map(|found| found.len())
        });
        assert_eq!(found, Ok(2));
        let count = |operation: Operation| stats.operations[operation as usize].iter().sum::<u64>();
        assert_eq!((count(Operation::Examine), count(Operation::Stat)), (1, 0));
        let named = stats.named();
        let is_named =
            |(name, count): &(String, u64)| name.starts_with("operations_by_kind.examine.") && *count == 1;
        assert!(named.iter().any(is_named), "{named:?}");
    });
}

#[test]
fn odd_names_come_back_as_they_are() {
    everywhere(|place| {
        let longest = vec![b'n'; 255];
        let odd: [&[u8]; 9] =
            [b" ", b"-rf", b"...", b"new\nline", b"\xff\xfe", b"\xc3\x28", b"*?[", b"\x01\x7f", &longest];
        let found: Result<_, Error> = place.run(async |_, folder| {
            for text in odd {
                folder.open(&name(text), OpenHow::create(0o644)).await?;
            }
            names_of(&folder).await
        });
        let found: BTreeSet<Vec<u8>> = found.expect("they are listed").into_iter().collect();
        assert_eq!(found, odd.iter().map(|text| text.to_vec()).collect());
    });
}

#[test]
fn folders_are_made_entered_and_removed() {
    everywhere(|place| {
        place.make_file("file", b"x");
        let outcome: Result<(), Error> = place.run(async |_, folder| {
            folder.make_dir(&name("a"), 0o700).await?;
            assert_eq!(errno(folder.make_dir(&name("a"), 0o700).await), Errno::EXIST);
            let a = folder.open_dir(&name("a")).await?;
            a.make_dir(&name("b"), 0o755).await?;
            assert_eq!(a.stat().await?.mode & 0o777, 0o700);
            assert_eq!(errno(folder.remove_dir(&name("a")).await), Errno::NOTEMPTY);
            assert_eq!(errno(folder.remove_dir(&name("file")).await), Errno::NOTDIR);
            assert_eq!(errno(folder.unlink(&name("a")).await), Errno::ISDIR);
            assert_eq!(errno(folder.unlink(&name("nothing")).await), Errno::NOENT);
            a.remove_dir(&name("b")).await?;
            folder.remove_dir(&name("a")).await?;
            assert_eq!(errno(a.make_dir(&name("c"), 0o755).await), Errno::NOENT, "it is gone");
            assert_eq!(errno(folder.enter(&name("a"), None).await.map(|_| ())), Errno::NOENT);
            assert_eq!(errno(folder.enter(&name("file"), None).await.map(|_| ())), Errno::NOTDIR);
            Ok(())
        });
        outcome.expect("all of it works");
    });
}

#[test]
fn links_are_made_read_and_not_followed() {
    everywhere(|place| {
        place.make_file("file", b"12345");
        let outcome: Result<(), Error> = place.run(async |_, folder| {
            folder.symlink(&name("link"), c"file".to_owned()).await?;
            assert_eq!(errno(folder.symlink(&name("link"), c"x".to_owned()).await), Errno::EXIST);
            assert_eq!(errno(folder.symlink(&name("none"), c"".to_owned()).await), Errno::NOENT);
            assert_eq!(folder.read_link(&name("link")).await?, b"file");
            assert_eq!(errno(folder.read_link(&name("file")).await), Errno::INVAL);
            assert_eq!(folder.stat_entry(&name("link"), false).await?.kind, FileKind::Symlink);
            assert_eq!(folder.stat_entry(&name("link"), true).await?.size, 5);
            folder.symlink(&name("loop"), c"loop".to_owned()).await?;
            assert_eq!(errno(folder.stat_entry(&name("loop"), true).await), Errno::LOOP);
            folder.symlink(&name("dangling"), c"nothing".to_owned()).await?;
            assert_eq!(errno(folder.stat_entry(&name("dangling"), true).await), Errno::NOENT);
            folder.link(&name("link"), &folder, &name("same link"), false).await?;
            folder.link(&name("link"), &folder, &name("same file"), true).await?;
            assert_eq!(folder.stat_entry(&name("link"), false).await?.links, 2);
            assert_eq!(folder.stat_entry(&name("file"), false).await?.links, 2);
            Ok(())
        });
        outcome.expect("all of it works");
    });
}

#[test]
fn hard_links_name_one_file() {
    everywhere(|place| {
        place.make_file("one", b"12345");
        let outcome: Result<(), Error> = place.run(async |_, folder| {
            folder.make_dir(&name("folder"), 0o755).await?;
            let inner = folder.open_dir(&name("folder")).await?;
            folder.link(&name("one"), &inner, &name("two"), false).await?;
            let (one, two) =
                (folder.stat_entry(&name("one"), false).await?, inner.stat_entry(&name("two"), false).await?);
            assert!(one.is_same_file(&two));
            assert_eq!(one.links, 2);
            let again = folder.link(&name("one"), &inner, &name("two"), false).await;
            assert_eq!(errno(again), Errno::EXIST);
            let of_folder = folder.link(&name("folder"), &folder, &name("x"), false).await;
            assert_eq!(errno(of_folder), Errno::PERM);
            let of_nothing = folder.link(&name("nothing"), &folder, &name("x"), false).await;
            assert_eq!(errno(of_nothing), Errno::NOENT);
            folder.unlink(&name("one")).await?;
            assert_eq!(inner.stat_entry(&name("two"), false).await?.links, 1);
            Ok(())
        });
        outcome.expect("all of it works");
    });
}

#[test]
fn entries_are_exchanged() {
    everywhere(|place| {
        place.make_file("file", &pattern(3));
        let outcome: Result<(), Error> = place.run(async |_, folder| {
            folder.make_dir(&name("full"), 0o755).await?;
            let full = folder.open_dir(&name("full")).await?;
            full.make_dir(&name("deep"), 0o755).await?;
            let refused = folder.exchange(&name("file"), &folder, &name("nothing")).await;
            assert_eq!(errno(refused), Errno::NOENT);
            assert_eq!(errno(folder.exchange(&name("full"), &full, &name("deep")).await), Errno::INVAL);
            folder.exchange(&name("file"), &folder, &name("full")).await?;
            assert_eq!(folder.stat_entry(&name("full"), false).await?.size, 3);
            assert_eq!(folder.stat_entry(&name("file"), false).await?.kind, FileKind::Directory);
            // Across folders, a folder's `..` counts.
            folder.exchange(&name("full"), &full, &name("deep")).await?;
            assert_eq!(full.stat().await?.links, 2);
            assert_eq!(full.stat_entry(&name("deep"), false).await?.kind, FileKind::Regular);
            assert!(!full.is_mount_root());
            Ok(())
        });
        outcome.expect("all of it works");
    });
}

#[test]
fn attributes_are_removed() {
    everywhere(|place| {
        place.make_file("file", &pattern(3));
        let outcome: Result<(), Error> = place.run(async |_, folder| {
            let file = folder.open(&name("file"), OpenHow::write()).await?;
            match file.set_xattr(c"user.one", b"1").await {
                // The temporary folder's filesystem has none.
                Err(error) if error.is(Errno::OPNOTSUPP) => return Ok(()),
                set => set?,
            }
            file.set_xattr(c"user.other", b"2").await?;
            file.remove_xattr(c"user.one").await?;
            assert_eq!(errno(file.remove_xattr(c"user.one").await), Errno::NODATA);
            folder.reach(&name("file")).await?.remove_xattr(c"user.other").await?;
            assert!(file.xattrs().await?.iter().all(|(name, _)| !name.to_bytes().starts_with(b"user.")));
            Ok(())
        });
        outcome.expect("all of it works");
    });
}

#[test]
fn entries_are_moved() {
    everywhere(|place| {
        place.make_file("file", &pattern(3));
        place.make_file("other", &pattern(4));
        let outcome: Result<(), Error> = place.run(async |_, folder| {
            folder.make_dir(&name("full"), 0o755).await?;
            let full = folder.open_dir(&name("full")).await?;
            full.make_dir(&name("deep"), 0o755).await?;
            let deep = full.open_dir(&name("deep")).await?;
            let moved = async |old: &str, dir: &Dir, new: &str, replace| {
                folder.rename(&name(old), dir, &name(new), replace).await
            };
            assert_eq!(errno(moved("nothing", &folder, "x", true).await), Errno::NOENT);
            assert_eq!(errno(moved("file", &folder, "other", false).await), Errno::EXIST);
            assert_eq!(errno(moved("file", &folder, "full", true).await), Errno::ISDIR);
            assert_eq!(errno(moved("full", &folder, "file", true).await), Errno::NOTDIR);
            assert_eq!(errno(moved("full", &deep, "itself", true).await), Errno::INVAL);
            folder.make_dir(&name("empty"), 0o755).await?;
            assert_eq!(errno(moved("empty", &folder, "full", true).await), Errno::NOTEMPTY);
            moved("file", &folder, "other", true).await?;
            moved("other", &deep, "moved", false).await?;
            assert_eq!(deep.stat_entry(&name("moved"), false).await?.size, 3);
            assert_eq!(full.stat().await?.links, 3);
            full.rename(&name("deep"), &folder, &name("deep"), false).await?;
            assert_eq!(full.stat().await?.links, 2, "a folder's `..` counts");
            moved("deep", &folder, "empty", true).await?;
            assert_eq!(
                folder.open_dir(&name("empty")).await?.stat_entry(&name("moved"), false).await?.size,
                3
            );
            Ok(())
        });
        outcome.expect("all of it works");
    });
}

#[test]
fn special_files_are_made() {
    everywhere(|place| {
        let outcome: Result<(), Error> = place.run(async |_, folder| {
            folder.make_node(&name("fifo"), FileKind::Fifo, 0o640, 0).await?;
            folder.make_node(&name("socket"), FileKind::Socket, 0o640, 0).await?;
            folder.make_node(&name("plain"), FileKind::Regular, 0o640, 0).await?;
            let again = folder.make_node(&name("fifo"), FileKind::Fifo, 0o640, 0).await;
            assert_eq!(errno(again), Errno::EXIST);
            if ferry_io::is_superuser() {
                folder.make_node(&name("null"), FileKind::CharDevice, 0o640, 0x103).await?;
                let stat = folder.stat_entry(&name("null"), false).await?;
                assert_eq!((stat.kind, stat.special), (FileKind::CharDevice, 0x103));
            }
            for (text, kind) in
                [("fifo", FileKind::Fifo), ("socket", FileKind::Socket), ("plain", FileKind::Regular)]
            {
                let stat = folder.stat_entry(&name(text), false).await?;
                assert_eq!((stat.kind, stat.mode, stat.special), (kind, 0o640, 0), "{text}");
            }
            assert_eq!(errno(folder.open(&name("socket"), OpenHow::read()).await), Errno::NXIO);
            assert_eq!(errno(folder.open(&name("fifo"), OpenHow::write()).await), Errno::NXIO);
            Ok(())
        });
        outcome.expect("all of it works");
    });
}

#[test]
fn entries_that_were_only_reached_are_changed_by_their_descriptor() {
    everywhere(|place| {
        let time = |seconds| Time { seconds, nanoseconds: 7 };
        let times = Times { accessed: time(1_000), modified: time(2_000) };
        let outcome: Result<(), Error> = place.run(async |_, folder| {
            folder.symlink(&name("link"), c"file".to_owned()).await?;
            folder.make_node(&name("fifo"), FileKind::Fifo, 0o600, 0).await?;
            folder.make_node(&name("socket"), FileKind::Socket, 0o600, 0).await?;
            for text in ["link", "fifo", "socket"] {
                let entry = folder.reach(&name(text)).await?;
                let made = entry.identify().await?;
                // The descriptor stays valid while the name moves.
                folder.rename(&name(text), &folder, &name("moved"), false).await?;
                folder.make_node(&name(text), FileKind::Fifo, 0o600, 0).await?;
                entry.set_times(times).await?;
                if text == "link" {
                    assert_eq!(errno(entry.set_mode(0o640).await), Errno::OPNOTSUPP);
                } else {
                    entry.set_mode(0o640).await?;
                }
                if ferry_io::is_superuser() {
                    entry.set_owner(Some(1), Some(2)).await?;
                    entry.set_xattr(c"trusted.x", b"value").await?;
                    assert_eq!(entry.xattrs().await?.len(), 1, "{text}");
                }
                folder.link_open(&entry, &name("linked")).await?;
                let found = folder.identify_entry(&name("linked"), false).await?;
                let owner = if ferry_io::is_superuser() { (1, 2) } else { (made.uid, made.gid) };
                assert_eq!((found.times, found.links, (found.uid, found.gid)), (times, 2, owner), "{text}");
                assert_eq!((found.kind, found.born), (made.kind, made.born), "{text}");
                assert!(text == "link" || found.mode == 0o640, "{text}");
                folder.unlink(&name("moved")).await?;
                folder.unlink(&name("linked")).await?;
                assert_eq!(errno(folder.link_open(&entry, &name("linked")).await), Errno::NOENT);
                let other = folder.stat_entry(&name(text), false).await?;
                assert_eq!((other.mode, other.is_same_file(&made)), (0o600, false), "{text}");
            }
            Ok(())
        });
        outcome.expect("all of it works");
    });
}

#[test]
fn folders_that_links_lead_to_are_opened_only_if_asked() {
    everywhere(|place| {
        let outcome: Result<(), Error> = place.run(async |_, folder| {
            folder.make_dir(&name("folder"), 0o755).await?;
            folder.symlink(&name("link"), c"folder".to_owned()).await?;
            assert_eq!(errno(folder.open_dir(&name("link")).await), Errno::NOTDIR);
            assert_eq!(errno(folder.enter(&name("link"), None).await.map(|_| ())), Errno::NOTDIR);
            folder.open_dir_following(&name("link")).await?;
            Ok(())
        });
        outcome.expect("all of it works");
    });
}
