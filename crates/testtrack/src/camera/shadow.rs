//! Soft shadows on the ground, under cones and trees and away from the sun.

use super::clamp::{to_u8, unit};
use super::pose::Pose;
use super::strip::Strip;
use super::{cones, sun, trees};
use crate::cone;
use crate::trig;
use crate::world::Viewpoint;

/// A shadow in the form of an ellipse on the ground, with its middle at (`x`, `y`).
struct Ellipse {
    x: f32,
    y: f32,
    /// Unit vector along the longer half-axis of the ellipse.
    along: (f32, f32),
    /// Half-axis of the ellipse in the direction of `along`, m.
    long: f32,
    /// Half-axis of the ellipse across `along`, m.
    wide: f32,
    /// Share of light, 0 to 1, that the shadow removes in its middle.
    strength: f32,
}

pub(super) fn draw_all(pose: &Pose, view: &Viewpoint, strip: &mut Strip<'_>) {
    if strip.rows.end <= pose.ground_from() {
        return;
    }
    let (sin, cos) = trig::sin_cos(sun::AZIMUTH);
    let away = (-cos as f32, -sin as f32);
    for tree in view.course.trees() {
        if pose.sees(tree.x, tree.y, (trees::DEPTHS.0, 120.0)).is_some() {
            let (long, wide) = (tree.height * 0.5, tree.height * 0.28);
            let (x, y) = (tree.x + away.0 * long * 0.7, tree.y + away.1 * long * 0.7);
            Ellipse { x, y, along: away, long, wide, strength: 0.5 }.draw(pose, strip);
        }
    }
    for cone in &view.cones {
        if pose.sees(cone.base[0], cone.base[1], (cones::DEPTHS.0, 70.0)).is_some() {
            draw_cone(pose, cone, away, strip);
        }
    }
}

fn draw_cone(pose: &Pose, cone: &cone::Pose, away: (f32, f32), strip: &mut Strip<'_>) {
    let [x, y, z] = cone.base;
    let [ax, ay, az] = cone.axis;
    let lift = 1.0 / (1.0 + 2.0 * z.max(0.0));
    let reach = cone::HEIGHT as f32;
    // Contact shadow: dark and close, under the middle of an object on the ground.
    let (mx, my) = (x + ax * reach * 0.4, y + ay * reach * 0.4);
    let lying = (1.0 - az.abs()).max(0.0);
    let along = if lying > 0.01 { normal(ax, ay) } else { away };
    let contact = Ellipse {
        x: mx,
        y: my,
        along,
        long: 0.40 + 0.12 * lying,
        wide: 0.40 - 0.08 * lying,
        strength: 0.55 * lift,
    };
    contact.draw(pose, strip);
    // The cast shadow of a standing cone extends away from the sun.
    let long = 0.62 * az.max(0.0);
    if long > 0.2 {
        let (x, y) = (x + away.0 * long * 0.85, y + away.1 * long * 0.85);
        let cast = Ellipse { x, y, along: away, long, wide: 0.17, strength: 0.42 * lift };
        cast.draw(pose, strip);
    }
}

fn normal(x: f32, y: f32) -> (f32, f32) {
    let length = (x * x + y * y).sqrt().max(1e-6);
    (x / length, y / length)
}

impl Ellipse {
    fn draw(&self, pose: &Pose, strip: &mut Strip<'_>) {
        let (dx, dy) = (self.x - pose.x, self.y - pose.y);
        let depth = dx * pose.cos + dy * pose.sin;
        let right = dx * pose.sin - dy * pose.cos;
        let (near, far) = ((depth - self.long).max(0.8), depth + self.long);
        if far <= near {
            return;
        }
        let row_of = |depth: f32| pose.horizon + pose.height * pose.focal / depth;
        let (rows, _) = strip.within(0.0, 0.0, row_of(far), row_of(near));
        for row in rows {
            let below = row as f32 + 0.5 - pose.horizon;
            if below < 0.5 {
                continue;
            }
            let depth = pose.height * pose.focal / below;
            let pixel = depth / pose.focal;
            let middle = pose.centre + right / pixel;
            let reach = self.long / pixel;
            let (_, columns) = strip.within(middle - reach, middle + reach, 0.0, 0.0);
            // The ground point under column x, relative to the ellipse's middle, is affine in x.
            let side = (columns.start as f32 + 0.5 - pose.centre) * pixel;
            let gx = depth * pose.cos + side * pose.sin - dx;
            let gy = depth * pose.sin - side * pose.cos - dy;
            let (ux, uy) = self.along;
            let along = (gx * ux + gy * uy) / self.long;
            let across = (gy * ux - gx * uy) / self.wide;
            let along_step = pixel * (pose.sin * ux - pose.cos * uy) / self.long;
            let across_step = pixel * (-pose.cos * ux - pose.sin * uy) / self.wide;
            for (i, luma) in strip.luma_row(row)[columns].iter_mut().enumerate() {
                let (u, v) = (along + along_step * i as f32, across + across_step * i as f32);
                let inside = unit(1.0 - u * u - v * v);
                let light = 1.0 - self.strength * inside * (2.0 - inside);
                *luma = to_u8(16.0 + (f32::from(*luma) - 16.0) * light);
            }
        }
    }
}
