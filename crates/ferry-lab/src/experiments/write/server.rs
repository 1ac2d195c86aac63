//! A server on loopback with generated content, used when no URL is given.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::content::Stamped;
use super::http::Url;
use crate::error::Failure;
use crate::units::{real, real_count};

/// Bytes of one write.
const PIECE: usize = 64 << 10;
/// Maximum time in which a client receives nothing.
const PATIENCE: Duration = Duration::from_secs(10);
/// Delay that later pieces make up for, because sleeps end late.
pub(super) const CREDIT: Duration = Duration::from_millis(1);

/// A server; stopped on drop.
pub(super) struct Server {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves `size` bytes generated from `seed` like a link of `rate` bytes a second: time in which the client does not
    /// receive is lost. 0 means without a limit.
    ///
    /// # Errors
    /// If no loopback port is available.
    pub(super) fn start(seed: u64, size: u64, rate: u64) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::Run(format!("no server can be started: {error}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        let serve = move || {
            for client in listener.incoming().flatten() {
                if flag.load(Ordering::SeqCst) {
                    return;
                }
                // The client reports a lost connection.
                answer(&client, &flag, Stamped::new(seed, size), rate).ok();
            }
        };
        let thread =
            std::thread::Builder::new().name("ferry-server".to_owned()).spawn(serve).map_err(failed)?;
        Ok(Self { address, is_over, thread: Some(thread) })
    }

    /// Returns its URL.
    pub(super) fn url(&self) -> Url {
        Url { host: self.address.to_string(), path: "/".to_owned() }
    }
}

impl Drop for Server {
    /// Connects once, because the thread blocks in accept(2).
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn answer(client: &TcpStream, is_over: &AtomicBool, mut content: Stamped, rate: u64) -> std::io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut request = BufReader::new(client);
    let mut line = String::new();
    while request.read_line(&mut line)? > 0 && !line.trim_end().is_empty() {
        line.clear();
    }
    let mut client = client;
    let size = content.size();
    write!(client, "HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n")?;
    let (mut due, mut sent) = (Instant::now(), 0);
    let mut piece = vec![0; PIECE];
    while sent < size && !is_over.load(Ordering::SeqCst) {
        let count = content.next(&mut piece);
        client.write_all(&piece[..count])?;
        sent += u64::try_from(count).unwrap_or(0);
        if rate > 0 {
            let takes = Duration::from_secs_f64(real_count(count) / real(rate));
            due = next_due(due, takes, Instant::now());
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }
    Ok(())
}

/// Returns the time at which a link has sent a piece, and can take the next one. It took the piece at `due`, and needs
/// `takes` for it. The piece had left the server at `now`, which is later if the client did not receive.
pub(super) fn next_due(due: Instant, takes: Duration, now: Instant) -> Instant {
    let sent = due + takes;
    now.checked_sub(CREDIT).map_or(sent, |received| sent.max(received))
}
