//! Cache of the recorded clips' pictures as rendered by ffmpeg, shared by experiments.
//! Interpolating one takes a third of a second of CPU time.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tautline_video::Picture;

/// A file of raw pictures of one clip, at one size and rate.
#[derive(Debug)]
pub(super) struct Kept {
    clip: PathBuf,
    /// Width and height.
    size: [usize; 2],
    file: PathBuf,
}

impl Kept {
    /// Returns the cache entry of a clip at this size and rate, in `folder`.
    pub(super) fn of(folder: &Path, clip: &Path, size: [usize; 2], rate: u32) -> Self {
        let stem = clip.file_stem().unwrap_or_default().to_string_lossy();
        let name = format!("{stem}-{}x{}-{rate}.yuv", size[0], size[1]);
        Self { clip: clip.to_owned(), size, file: folder.join(name) }
    }

    /// Returns the number of cached pictures; `None` if there are none, or the clip changed after
    /// they were cached.
    fn count(&self) -> Option<usize> {
        let [clip, kept] = [&self.clip, &self.file].map(|file| fs::metadata(file).ok());
        let (clip, kept) = (clip?, kept?);
        let is_younger = kept.modified().ok()? > clip.modified().ok()?;
        // Luma, and two planes of a quarter each.
        let bytes = self.size[0] * self.size[1] * 3 / 2;
        is_younger.then_some(kept.len() as usize / bytes)
    }

    /// Returns the first `count` pictures; `None` if fewer are cached.
    pub(super) fn read(&self, count: usize) -> Option<Vec<Picture>> {
        self.count().filter(|kept| *kept >= count)?;
        let mut file = BufReader::new(File::open(&self.file).ok()?);
        (0..count).map(|_| read(&mut file, self.size)).collect::<Result<_>>().ok()
    }

    /// Caches pictures, unless as many or more are cached already.
    ///
    /// # Errors
    /// If they cannot be written.
    pub(super) fn keep(&self, pictures: &[Picture]) -> Result<()> {
        if self.count().is_some_and(|kept| kept >= pictures.len()) {
            return Ok(());
        }
        let folder = self.file.parent().context("a file is in a folder")?;
        fs::create_dir_all(folder)?;
        // Write atomically: another experiment may read or write it at the same time.
        let new = tempfile::NamedTempFile::new_in(folder)?;
        let mut writer = BufWriter::new(&new);
        for picture in pictures {
            for plane in [picture.luma(), picture.cb(), picture.cr()] {
                writer.write_all(plane)?;
            }
        }
        writer.flush()?;
        drop(writer);
        new.persist(&self.file)?;
        Ok(())
    }
}

/// Reads the next raw picture.
///
/// # Errors
/// If no complete one is left.
pub(super) fn read(from: &mut impl Read, [width, height]: [usize; 2]) -> Result<Picture> {
    let mut picture = Picture::new(width, height)?;
    let (luma, cb, cr) = picture.planes_mut();
    for plane in [luma, cb, cr] {
        from.read_exact(plane).context("no whole picture")?;
    }
    Ok(picture)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_pictures_are_those_of_the_clip_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let clip = folder.path().join("road.mp4");
        fs::write(&clip, "first").unwrap();
        let pictures = [1, 2, 3].map(|grey| {
            let mut picture = Picture::new(32, 16).unwrap();
            picture.planes_mut().0.fill(grey);
            picture
        });
        let kept = Kept::of(folder.path(), &clip, [32, 16], 30);
        assert!(kept.read(1).is_none());
        kept.keep(&pictures[..2]).unwrap();
        assert_eq!(kept.read(2).unwrap(), pictures[..2]);
        assert!(kept.read(3).is_none(), "three are not kept");
        kept.keep(&pictures).unwrap();
        kept.keep(&pictures[..1]).unwrap();
        assert_eq!(kept.read(3).unwrap(), pictures, "one takes the place of three");
        // The clip changes afterwards.
        let later = fs::metadata(&kept.file).unwrap().modified().unwrap();
        File::options().write(true).open(&clip).unwrap().set_modified(later).unwrap();
        assert!(kept.read(1).is_none(), "another clip's");
    }
}
