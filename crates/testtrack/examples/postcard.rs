//! Writes pictures from a drive over the course: `postcard [seed] [folder]` produces eight PPM
//! files, one every 9 s of the drive, and prints the speed and the count of cones hit at each.
//!
//! `ffmpeg -i postcard-0.ppm postcard-0.png` converts them to PNG.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use tautline_testtrack::{Autopilot, Camera, Windscreen, World};
use tautline_video::Picture;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let seed = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    let folder = arguments.next().unwrap_or_else(|| "/tmp".into());
    let camera = Camera::new(Windscreen::WIDTH, Windscreen::HEIGHT)?;
    let mut picture = Picture::new(Windscreen::WIDTH, Windscreen::HEIGHT)?;
    let mut world = World::new(seed);
    let pilot = Autopilot::default();
    for index in 0..8 {
        camera.render(&world.view(), &mut picture);
        let path = Path::new(&folder).join(format!("postcard-{index}.ppm"));
        write_ppm(&path, &picture)?;
        let car = world.car();
        println!("{}: {:.1} m/s, {} cones", path.display(), car.speed, world.cones_hit());
        for _ in 0..60 * 9 {
            let controls = pilot.controls(world.course(), world.car());
            world.step(&controls, Duration::from_micros(16_667));
        }
    }
    Ok(())
}

/// Writes `picture` (BT.601, limited range) as a portable pixel map.
fn write_ppm(path: &Path, picture: &Picture) -> std::io::Result<()> {
    let (width, height) = (picture.width(), picture.height());
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "P6 {width} {height} 255")?;
    for row in 0..height {
        for column in 0..width {
            let chroma = row / 2 * (width / 2) + column / 2;
            let y = 1.164 * (f32::from(picture.luma()[row * width + column]) - 16.0);
            let cb = f32::from(picture.cb()[chroma]) - 128.0;
            let cr = f32::from(picture.cr()[chroma]) - 128.0;
            let rgb = [y + 1.596 * cr, y - 0.392 * cb - 0.813 * cr, y + 2.017 * cb];
            file.write_all(&rgb.map(|value| value.clamp(0.0, 255.0) as u8))?;
        }
    }
    file.flush()
}
