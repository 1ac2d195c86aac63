//! Operations of an open file: results and refusals.

use std::cell::{Cell, RefCell};
use std::ffi::CString;

use ferry_io::{
    Content, Errno, Error, FileKind, OpenHow, Operation, Options, Route, RouteChoice, Time, Times, for_each,
    give_way,
};

use super::filtered::answering;
use super::place::{Place, errno, everywhere, in_simulation, name, on_the_kernel, pattern, write_file};

#[test]
fn what_is_written_is_read_again() {
    everywhere(|place| {
        let bytes = pattern(50_000);
        let read: Result<Vec<u8>, Error> = place.run(async |io, folder| {
            write_file(&io, &folder, "file", &bytes).await?;
            let file = folder.open(&name("file"), OpenHow::read()).await?;
            let mut found = Vec::new();
            loop {
                let (block, count) = file.read_at(io.block().await?, found.len() as u64).await;
                match count? {
                    0 => return Ok(found),
                    count => assert_eq!(count, block.as_slice().len()),
                }
                found.extend_from_slice(block.as_slice());
            }
        });
        assert_eq!(read.expect("it is read"), bytes);
        assert_eq!(place.bytes_of("file"), bytes);
    });
}

#[test]
fn a_part_of_a_block_is_written_where_it_belongs() {
    everywhere(|place| {
        let outcome: Result<(), Error> = place.run(async |io, folder| {
            let file = folder.open(&name("file"), OpenHow::create(0o600)).await?;
            let mut block = io.block().await?;
            block.as_mut_capacity()[..10].copy_from_slice(b"0123456789");
            block.set_filled(10);
            let (block, written) = file.write_part_at(block, (3, 7), 2).await;
            assert_eq!(block.as_slice(), b"0123456789");
            written
        });
        outcome.expect("it is written");
        assert_eq!(place.bytes_of("file"), b"\0\x003456");
    });
}

#[test]
fn opening_refuses_as_linux_does() {
    everywhere(|place| {
        place.make_file("file", b"x");
        place.run(async |_, folder| {
            folder.make_dir(&name("folder"), 0o755).await.expect("a folder");
            folder.symlink(&name("link"), c"file".to_owned()).await.expect("a link");
            let open = async |text: &str, how| folder.open(&name(text), how).await;
            assert_eq!(errno(open("nothing", OpenHow::read()).await), Errno::NOENT);
            assert_eq!(errno(open("file", OpenHow::create(0o644)).await), Errno::EXIST);
            assert_eq!(errno(open("link", OpenHow::create(0o644)).await), Errno::EXIST);
            assert_eq!(errno(open("folder", OpenHow::write()).await), Errno::ISDIR);
            assert_eq!(errno(open("link", OpenHow::read()).await), Errno::LOOP);
            assert!(open("link", OpenHow::read().following()).await.is_ok());
            assert_eq!(errno(open(&"n".repeat(256), OpenHow::read()).await), Errno::NAMETOOLONG);
            assert_eq!(errno(folder.open_dir(&name("file")).await), Errno::NOTDIR);
            assert_eq!(errno(folder.open_dir(&name("link")).await), Errno::NOTDIR);
        });
    });
}

#[test]
fn reading_and_writing_refuse_as_linux_does() {
    everywhere(|place| {
        place.make_file("file", b"12345");
        let outcome: Result<(), Error> = place.run(async |io, folder| {
            let reader = folder.open(&name("file"), OpenHow::read()).await?;
            let writer = folder.open(&name("file"), OpenHow::write()).await?;
            let (mut block, count) = reader.read_at(io.block().await?, 5).await;
            assert_eq!(count, Ok(0), "the end");
            block.set_filled(1);
            assert_eq!(errno(reader.write_all_at(block, 0).await.1), Errno::BADF);
            assert_eq!(errno(writer.read_at(io.block().await?, 0).await.1), Errno::BADF);
            assert_eq!(errno(folder.as_file().read_at(io.block().await?, 0).await.1), Errno::ISDIR);
            assert_eq!(errno(reader.truncate(0).await), Errno::INVAL);
            Ok(())
        });
        outcome.expect("the rest works");
    });
}

#[test]
fn truncating_and_reserving_change_size_and_room() {
    everywhere(|place| {
        place.make_file("file", &pattern(10_000));
        let outcome: Result<(), Error> = place.run(async |_, folder| {
            let file = folder.open(&name("file"), OpenHow::write()).await?;
            file.truncate(100).await?;
            assert_eq!(file.stat().await?.size, 100);
            file.truncate(5000).await?;
            assert_eq!(file.stat().await?.size, 5000);
            file.allocate(0, 1 << 20).await?;
            let stat = file.stat().await?;
            assert_eq!(stat.size, 5000, "the size stays");
            assert!(stat.blocks * 512 >= 1 << 20);
            file.sync_data().await?;
            file.start_write_back(0, 5000).await?;
            file.sync().await?;
            folder.sync_filesystem().await
        });
        outcome.expect("all of it works");
        let bytes = place.bytes_of("file");
        assert_eq!(bytes[..100], pattern(100));
        assert!(bytes[100..].iter().all(|&byte| byte == 0));
    });
}

#[test]
fn holes_and_data_are_found() {
    everywhere(|place| {
        const FAR: u64 = 1 << 40;
        place.make_file("file", &pattern(4096));
        place.resize("file", FAR);
        let outcome: Result<(), Error> = place.run(async |_, folder| {
            let file = folder.open(&name("file"), OpenHow::read()).await?;
            assert_eq!(file.seek_data(0).await?, Some(0));
            assert_eq!(file.seek_hole(0).await?, Some(4096));
            assert_eq!(file.seek_data(4096).await?, None, "a hole of a TiB takes no time");
            assert_eq!(file.seek_hole(FAR - 1).await?, Some(FAR - 1));
            assert_eq!(file.seek_hole(FAR).await?, None);
            let stat = file.stat().await?;
            assert!(stat.may_have_holes());
            assert_eq!(stat.size, FAR);
            Ok(())
        });
        outcome.expect("all of it works");
    });
}

#[test]
fn the_kernel_copies_ranges_between_files() {
    everywhere(|place| {
        let bytes = pattern(30_000);
        place.make_file("source", &bytes);
        let outcome: Result<(), Error> = place.run(async |_, folder| {
            let source = folder.open(&name("source"), OpenHow::read()).await?;
            let target = folder.open(&name("target"), OpenHow::create(0o644)).await?;
            let mut at = 0;
            loop {
                match source.copy_range(at, &target, at, 1 << 20, at == 0).await? {
                    0 => break,
                    count => at += count as u64,
                }
            }
            assert_eq!(errno(target.copy_range(0, &source, 0, 1, true).await), Errno::BADF);
            Ok(())
        });
        outcome.expect("all of it works");
        assert_eq!(place.bytes_of("target"), bytes);
    });
}

#[test]
fn a_clone_equals_its_source_or_is_refused() {
    everywhere(|place| {
        let bytes = pattern(30_000);
        place.make_file("source", &bytes);
        let cloned: Result<(), Error> = place.run(async |_, folder| {
            let source = folder.open(&name("source"), OpenHow::read()).await?;
            let target = folder.open(&name("target"), OpenHow::create(0o644)).await?;
            source.clone_to(&target).await
        });
        match cloned {
            Ok(()) => assert_eq!(place.bytes_of("target"), bytes),
            Err(error) => {
                assert!(place.world().is_none(), "the simulation can");
                assert!(error.is(Errno::OPNOTSUPP) || error.is(Errno::INVAL), "{error}");
            }
        }
    });
}

#[test]
fn owner_mode_and_times_are_set_on_open_files() {
    everywhere(|place| {
        place.make_file("file", b"x");
        let times = Times {
            accessed: Time { seconds: 1, nanoseconds: 2 },
            modified: Time { seconds: -3, nanoseconds: 999_999_999 },
        };
        let outcome: Result<(), Error> = place.run(async |_, folder| {
            let file = folder.open(&name("file"), OpenHow::read()).await?;
            if ferry_io::is_superuser() {
                file.set_owner(Some(12), Some(34)).await?;
                file.set_owner(None, Some(56)).await?;
                let stat = file.stat().await?;
                assert_eq!((stat.uid, stat.gid), (12, 56));
                file.set_mode(0o6755).await?;
                file.set_owner(Some(13), None).await?;
                assert_eq!(file.stat().await?.mode, 0o755, "a new owner loses setuid");
            }
            file.set_mode(0o1640).await?;
            file.set_times(times).await?;
            let stat = file.stat().await?;
            assert_eq!((stat.mode, stat.times), (0o1640, times));
            let root = folder.as_file();
            root.set_mode(0o711).await?;
            assert_eq!(folder.stat().await?.mode, 0o711);
            Ok(())
        });
        outcome.expect("all of it works");
    });
}

#[test]
fn extended_attributes_are_set_and_listed() {
    everywhere(|place| {
        place.make_file("file", b"x");
        let large = vec![7; 2000];
        let outcome: Result<(), Error> = place.run(async |_, folder| {
            let file = folder.open(&name("file"), OpenHow::read()).await?;
            assert_eq!(file.xattrs().await?, []);
            file.set_xattr(c"user.one", b"1").await?;
            file.set_xattr(c"user.large", &large).await?;
            file.set_xattr(c"user.one", b"").await?;
            let sorted = |mut found: Vec<ferry_io::Xattr>| {
                found.sort();
                found
            };
            let both = [(c"user.large".to_owned(), large.clone()), (c"user.one".to_owned(), vec![])];
            assert_eq!(sorted(file.xattrs().await?), both);
            assert_eq!(sorted(folder.entry_xattrs(&name("file")).await?), both);
            assert_eq!(errno(file.set_xattr(c"nonsense", b"").await), Errno::OPNOTSUPP);
            for letter in 'a'..'h' {
                let long = format!("user.{}", letter.to_string().repeat(100));
                file.set_xattr(&CString::new(long).expect("no NUL"), b"").await?;
            }
            assert_eq!(file.xattrs().await?.len(), 9, "the list is longer than the first buffer");
            assert_eq!(folder.entry_xattrs(&name("file")).await?.len(), 9);
            folder.symlink(&name("link"), c"file".to_owned()).await?;
            let link = folder.reach(&name("link")).await?;
            assert_eq!(errno(link.set_xattr(c"user.x", b"").await), Errno::PERM, "not on links");
            if ferry_io::is_superuser() {
                link.set_xattr(c"trusted.x", b"of the link").await?;
                let found = folder.entry_xattrs(&name("link")).await?;
                assert_eq!(found, [(c"trusted.x".to_owned(), b"of the link".to_vec())]);
            }
            Ok(())
        });
        outcome.expect("all of it works");
    });
}

#[test]
fn a_small_file_is_loaded_whole() {
    everywhere(|place| {
        place.make_file("small", &pattern(5000));
        place.make_file("large", &pattern(50_000));
        place.make_file("empty", b"");
        place.make_file("sparse", b"x");
        place.resize("sparse", 8000);
        let outcome: Result<(), Error> = place.run(async |io, folder| {
            folder.open(&name("small"), OpenHow::read()).await?.set_xattr(c"user.a", b"b").await?;
            let load = async |text: &str, xattrs| folder.load(&name(text), io.block().await?, xattrs).await;
            let small = load("small", true).await?;
            assert_eq!(small.xattrs, [(c"user.a".to_owned(), b"b".to_vec())]);
            assert_eq!(small.stat.size, 5000);
            let whole = match small.content {
                Content::Whole(block) => block.as_slice().to_vec(),
                Content::Stored(..) | Content::Begun(..) => unreachable!("nobody said where"),
                Content::Open(file) => {
                    // A short read allows this.
                    assert!(file.stat().await?.size == 5000);
                    pattern(5000)
                }
            };
            assert_eq!(whole, pattern(5000));
            assert!(matches!(load("large", false).await?.content, Content::Open(_)));
            assert!(matches!(load("sparse", false).await?.content, Content::Open(_)));
            assert_eq!(load("empty", false).await?.stat.size, 0);
            assert_eq!(errno(load("nothing", false).await.map(|_| ())), Errno::NOENT);
            Ok(())
        });
        outcome.expect("all of it works");
    });
}

#[test]
fn loading_what_is_not_a_file_only_opens_it() {
    everywhere(|place| {
        let outcome: Result<(), Error> = place.run(async |io, folder| {
            folder.make_node(&name("fifo"), FileKind::Fifo, 0o644, 0).await?;
            let loaded = folder.load(&name("fifo"), io.block().await?, true).await?;
            assert_eq!(loaded.stat.kind, FileKind::Fifo);
            assert!(matches!(loaded.content, Content::Open(_)), "and does not wait for a writer");
            Ok(())
        });
        outcome.expect("all of it works");
    });
}

/// statfs(2), `f_type`.
const TMPFS: i64 = 0x0102_1994;

/// Makes files that are not in memory; returns false on a filesystem that keeps all of them there.
fn make_cold(place: &Place, files: usize) -> bool {
    if rustix::fs::statfs(place.path()).expect("it is there").f_type == TMPFS {
        println!("SKIP files on tmpfs stay in memory");
        return false;
    }
    for file in 0..files {
        place.make_file(&format!("cold-{file}"), &pattern(3000 + file));
    }
    place.run(async |_, folder| {
        for file in 0..files {
            let text = format!("cold-{file}");
            let handle = std::fs::File::open(place.path().join(&text)).expect("it was made");
            handle.sync_all().expect("it is written back");
            let file = folder.open(&name(&text), OpenHow::read()).await.expect("it is there");
            // Pages on some processor's list stay for a while.
            let is_gone = |_| {
                rustix::fs::fadvise(&handle, 0, None, rustix::fs::Advice::DontNeed).expect("advice is taken");
                file.cached_bytes(0, 1 << 20).is_none_or(|(cached, _)| cached == 0)
            };
            assert!((0..1000).any(is_gone), "{text} stays in memory");
        }
    });
    true
}

/// Loads 40 cold files; returns the numbers of those that went to the pool, of those that the kernel had found missing from
/// memory, and of the pool's requests.
fn load_cold_files(place: &Place) -> [u64; 3] {
    let options = Options { route: RouteChoice::Auto, blocks: 16, ..place.options() };
    let (loaded, stats) = place.run_with(&options, async |io, folder| {
        let sizes = RefCell::new(Vec::new());
        let each = async |file: usize| {
            let block = io.block().await?;
            let loaded = folder.load(&name(format!("cold-{file}")), block, true).await?;
            let Content::Whole(block) = loaded.content else { panic!("a small file is loaded whole") };
            assert_eq!(block.as_slice(), pattern(3000 + file));
            sizes.borrow_mut().push(loaded.stat.size);
            Ok::<(), Error>(())
        };
        for_each(16, 0..40, each).await.map(|()| sizes.take().len())
    });
    assert_eq!(loaded.expect("they are loaded"), 40);
    [stats.operations[Operation::Load as usize][Route::Pool as usize], stats.misses, stats.pool_requests]
}

#[test]
fn cold_files_of_one_folder_go_to_the_pool_together() {
    const TRIES: usize = 8;
    on_the_kernel(|place| {
        for _ in 0..TRIES {
            if !make_cold(place, 40) {
                return;
            }
            let [in_pool, misses, requests] = load_cold_files(place);
            // Where a virtual machine's host runs the device before the guest goes on, the kernel has read a file
            // when it is asked for it. Then the worker reads the files itself.
            if in_pool >= 12 {
                assert!(requests <= in_pool / 3, "{requests} requests for {in_pool} files");
                return;
            }
            assert!(
                misses < 12,
                "{misses} files were found missing from memory, and {in_pool} went to the pool"
            );
        }
        println!("{}: in {TRIES} tries, the device was as fast as memory", place.path().display());
    });
}

#[test]
fn a_request_to_the_pool_has_at_most_eight_cold_files() {
    let fullest = Cell::new(0);
    in_simulation(|place| {
        for file in 0..40 {
            place.make_file(&format!("cold-{file}"), &pattern(3000 + file));
        }
        let [in_pool, _, requests] = load_cold_files(place);
        assert!(in_pool <= 8 * requests, "{requests} requests for {in_pool} files");
        fullest.set(in_pool.checked_div(requests).map_or(0, |mean| mean.max(fullest.get())));
    });
    assert!(fullest.get() >= 4, "no run has filled half of its requests: {} files each", fullest.get());
}

#[test]
fn a_batch_that_nobody_waits_for_any_more_gives_everything_back() {
    on_the_kernel(|place| {
        if !make_cold(place, 40) {
            return;
        }
        place.run(async |io, folder| {
            for drop_after in [0, 1, 3] {
                let each = async |file: usize| {
                    if file == 12 {
                        for _ in 0..drop_after {
                            give_way().await;
                        }
                        return folder.open(&name("nothing"), OpenHow::read()).await.map(|_| ());
                    }
                    folder.load(&name(format!("cold-{file}")), io.block().await?, false).await.map(|_| ())
                };
                assert!(for_each(16, 0..40, each).await.is_err());
            }
        });
    });
}

/// Linux 5.9 and 5.10 may answer 0 to a read that must not block.
#[test]
fn an_end_that_the_kernel_names_too_early_is_not_believed() {
    let place = Place::posix();
    let bytes = pattern(5000);
    place.make_file("file", &bytes);
    let read = answering(&[(libc::SYS_preadv2, None)], || {
        place.run(async |io, folder| {
            let file = folder.open(&name("file"), OpenHow::read()).await?;
            let (read, count) = file.read_at(io.block().await?, 0).await;
            count?;
            let loaded = folder.load(&name("file"), io.block().await?, false).await?;
            let Content::Whole(loaded) = loaded.content else { panic!("it fits into a block") };
            Ok::<_, Error>([read.as_slice().to_vec(), loaded.as_slice().to_vec()])
        })
    });
    if let Some(read) = read {
        assert_eq!(read.expect("it is read"), [bytes.clone(), bytes]);
    }
}

#[test]
fn closing_tells_what_the_filesystem_found_out_last() {
    let place = Place::posix();
    let closed = place.run(async |_, folder| {
        let file = folder.open(&name("file"), OpenHow::create(0o600)).await.expect("a new file");
        let clone = file.clone();
        answering(&[(libc::SYS_close, Some(Errno::DQUOT))], || [clone.close(), file.close()])
    });
    if let Some([shared, last]) = closed {
        assert_eq!(shared, Ok(()), "it stays open");
        assert_eq!(errno(last), Errno::DQUOT);
    }
}

#[test]
fn a_closed_file_is_closed() {
    everywhere(|place| {
        place.run(async |_, folder| {
            let file = folder.open(&name("file"), OpenHow::create(0o600)).await.expect("a new file");
            assert_eq!(file.close(), Ok(()));
            let open = || place.open_descriptors().iter().filter(|path| path.ends_with("file")).count();
            assert_eq!(open(), 0);
            let file = folder.open(&name("file"), OpenHow::write()).await.expect("it is there");
            let clone = file.clone();
            assert_eq!(file.close_in(&folder).await, Ok(()));
            assert_eq!(open(), 1, "the clone keeps it open");
            assert_eq!(clone.close_in(&folder).await, Ok(()));
            assert_eq!(open(), 0);
        });
    });
}

#[test]
fn without_a_thread_to_be_had_the_worker_does_it_itself() {
    let place = Place::posix();
    place.make_file("file", b"12345");
    let none = Some(Errno::AGAIN);
    let options = Options { route: RouteChoice::Pool, ..place.options() };
    let loaded = answering(&[(libc::SYS_clone3, none), (libc::SYS_clone, none)], || {
        let (loaded, stats) = place.run_with(&options, async |io, folder| {
            folder.load(&name("file"), io.block().await?, false).await.map(|loaded| loaded.stat.size)
        });
        assert_eq!(stats.pool_threads, 0);
        loaded
    });
    assert_eq!(loaded.unwrap_or(Ok(5)), Ok(5));
}

#[test]
fn the_pool_has_no_more_threads_than_it_may() {
    on_the_kernel(|place| {
        place.make_file("file", b"12345");
        let options = Options { pool_threads: 3, route: RouteChoice::Pool, ..place.options() };
        let (statted, stats) = place.run_with(&options, async |_, folder| {
            for_each(50, 0..500, async |_| folder.stat_entry(&name("file"), false).await.map(|_| ())).await
        });
        assert_eq!(statted, Ok(()));
        assert!((1..=3).contains(&stats.pool_threads), "{}", stats.pool_threads);
    });
}

#[test]
fn what_is_closed_is_counted() {
    let place = Place::posix();
    place.make_file("file", b"12345");
    let calls = |times: u64| {
        let (opened, stats) = place.run_with(&place.options(), async |_, folder| {
            for _ in 0..times {
                folder.open(&name("file"), OpenHow::read()).await?;
            }
            Ok::<_, Error>(())
        });
        opened.expect("it is there");
        stats.system_calls
    };
    // Each is opened and closed; a slow call costs one more, for the context switches.
    assert!(calls(201) - calls(1) >= 400);
}

/// Samba and NFS servers lease files for their clients, and release them when the kernel asks.
#[test]
fn a_leased_file_is_waited_for() {
    const HOLDER: &str = "open my $f, '<', $ARGV[0] or die; fcntl($f, 1024, $ARGV[1] + 0) or die; \
                          my $asked = 0; $SIG{IO} = sub { $asked = 1 }; $| = 1; print qq(leased\\n); \
                          while (!$asked) { select undef, undef, undef, 0.05 } \
                          select undef, undef, undef, 0.2; fcntl($f, 1024, 2) or die;";
    on_the_kernel(|place| {
        place.make_file("file", b"12345");
        // F_RDLCK: opening it for writing has to wait.
        let mut holder = std::process::Command::new("perl");
        holder.args(["-e", HOLDER]).arg(place.path().join("file")).arg("0");
        let mut holder = holder.stdout(std::process::Stdio::piped()).spawn().expect("perl is there");
        let mut said = String::new();
        let output = holder.stdout.take().expect("it is piped");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut said).expect("it says so");
        assert_eq!(said, "leased\n");
        let opened =
            place.run(async |_, folder| folder.open(&name("file"), OpenHow::write()).await.map(drop));
        assert_eq!(opened, Ok(()));
        assert!(holder.wait().expect("it ends").success());
    });
}
