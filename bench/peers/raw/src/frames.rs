//! Frames of a 32-bit length and so many bytes, gathered into large writes.

use std::io::{self, IoSlice, Write as _};
use std::net::TcpStream;

use crate::socket::{read_some, write_all};

/// What is written, and at least read, at once.
pub const BATCH_BYTES: usize = 64 << 10;

const HEAD_BYTES: usize = 4;

/// Frames on their way out.
#[derive(Debug, Default)]
pub struct Out {
    bytes: Vec<u8>,
}

impl Out {
    /// Room for one batch.
    pub fn new() -> Self {
        Self { bytes: Vec::with_capacity(BATCH_BYTES) }
    }

    /// Adds a frame, writing what is there if it does not fit.
    pub fn put(&mut self, stream: &TcpStream, frame: &[u8]) -> io::Result<()> {
        if !self.fits(frame) {
            self.flush(stream)?;
        }
        if self.fits(frame) {
            self.append(frame);
            return Ok(());
        }
        let head = (frame.len() as u32).to_le_bytes();
        let mut stream_ref = stream;
        let len = stream_ref.write_vectored(&[IoSlice::new(&head), IoSlice::new(frame)])?;
        if len < HEAD_BYTES {
            write_all(stream, &head[len..])?;
        }
        write_all(stream, &frame[len.saturating_sub(HEAD_BYTES)..])
    }

    /// Whether a frame still fits this batch.
    pub fn fits(&self, frame: &[u8]) -> bool {
        self.bytes.len() + HEAD_BYTES + frame.len() <= BATCH_BYTES
    }

    /// Adds a frame that fits.
    pub fn append(&mut self, frame: &[u8]) {
        self.bytes.extend_from_slice(&(frame.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(frame);
    }

    /// Writes what is there.
    pub fn flush(&mut self, stream: &TcpStream) -> io::Result<()> {
        write_all(stream, &self.bytes)?;
        self.bytes.clear();
        Ok(())
    }

    /// Writes what is there to each of `streams`.
    pub fn flush_to_all(&mut self, streams: &[TcpStream]) -> io::Result<()> {
        for stream in streams {
            write_all(stream, &self.bytes)?;
        }
        self.bytes.clear();
        Ok(())
    }
}

/// Frames on their way in.
#[derive(Debug)]
pub struct In {
    bytes: Vec<u8>,
    len: usize,
}

/// What one read brought.
#[derive(Debug, Clone, Copy, Default)]
pub struct Came {
    /// Frames with bytes.
    pub frames: u64,
    /// Frames without: the end.
    pub empty: u64,
}

impl In {
    /// Room for some frames of `size`.
    pub fn new(size: usize) -> Self {
        Self::with_capacity(4 * BATCH_BYTES + 2 * (size + HEAD_BYTES))
    }

    /// Room for `bytes`.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { bytes: vec![0; bytes], len: 0 }
    }

    /// Uses the memory, as a server does that has read from this peer.
    pub fn touch(&mut self) {
        self.bytes.fill(1);
    }

    /// Reads once and counts the frames that are whole.
    pub fn read(&mut self, stream: &TcpStream) -> io::Result<Came> {
        self.len += read_some(stream, &mut self.bytes[self.len..])?;
        let (mut at, mut came) = (0, Came::default());
        while let Some(frame) = self.frame_at(at) {
            at += HEAD_BYTES + frame;
            if frame == 0 { came.empty += 1 } else { came.frames += 1 }
        }
        self.bytes.copy_within(at..self.len, 0);
        self.len -= at;
        Ok(came)
    }

    /// Length of the frame there, if it is whole.
    fn frame_at(&self, at: usize) -> Option<usize> {
        let head = self.bytes[at..self.len].first_chunk::<HEAD_BYTES>()?;
        let frame = u32::from_le_bytes(*head) as usize;
        (self.len - at >= HEAD_BYTES + frame).then_some(frame)
    }
}
