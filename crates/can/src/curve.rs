use std::fmt;

/// A function of one number.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Curve {
    Line {
        scale: f64,
        offset: f64,
    },
    /// Straight lines between points in ascending order of x, at least two. Before the first and
    /// after the last, the value is that of the point.
    Points(Vec<(f64, f64)>),
    /// A value for each of the integers from 0, at least one. Fractions are cut off, and beyond the
    /// last integer its value holds.
    Values(Vec<f64>),
}

impl Curve {
    /// Returns the curve of scale and offset, or of points, as a map gives them.
    ///
    /// # Errors
    /// Says what is wrong with them.
    pub(crate) fn of(
        scale: Option<f64>,
        offset: Option<f64>,
        points: Option<&Vec<(f64, f64)>>,
    ) -> Result<Self, String> {
        let Some(points) = points else {
            let (scale, offset) = (scale.unwrap_or(1.0), offset.unwrap_or(0.0));
            let is_sound = scale.is_finite() && scale != 0.0 && offset.is_finite();
            return match is_sound {
                true => Ok(Self::Line { scale, offset }),
                false => Err(format!("scale = {scale}, offset = {offset}: use numbers, and not 0")),
            };
        };
        let is_rising = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let is_finite = points.iter().all(|(x, y)| x.is_finite() && y.is_finite());
        if scale.is_some() || offset.is_some() || points.len() < 2 || !is_rising || !is_finite {
            return Err("points has two or more pairs whose first number rises, and neither \
                        scale nor offset"
                .into());
        }
        Ok(Self::Points(points.clone()))
    }

    /// Returns the value at `x`.
    pub(crate) fn at(&self, x: f64) -> f64 {
        match self {
            Self::Line { scale, offset } => x * scale + offset,
            Self::Points(points) => {
                let (Some(first), Some(last)) = (points.first(), points.last()) else { return 0.0 };
                let after = points.iter().position(|(at, _)| *at > x);
                match after {
                    Some(0) => first.1,
                    None => last.1,
                    Some(after) => {
                        let ((x0, y0), (x1, y1)) = (points[after - 1], points[after]);
                        y0 + (y1 - y0) * (x - x0) / (x1 - x0)
                    }
                }
            }
            // The conversion saturates.
            Self::Values(values) => {
                values.get(x as usize).or(values.last()).copied().unwrap_or(0.0)
            }
        }
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { scale, offset } => {
                if *scale != 1.0 {
                    write!(f, " x {scale}")?;
                }
                match offset {
                    0.0 => Ok(()),
                    offset if *offset < 0.0 => write!(f, " - {}", -offset),
                    offset => write!(f, " + {offset}"),
                }
            }
            Self::Points(points) => write!(f, " by {} points", points.len()),
            Self::Values(values) => {
                let values: Vec<String> = values.iter().map(f64::to_string).collect();
                write!(f, ": {}", values.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_followed_and_level_outside() {
        let points = Curve::Points(vec![(-1.0, -4.0), (0.0, 0.0), (1.0, 2.0)]);
        assert_eq!(
            [-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 9.0].map(|x| points.at(x)),
            [-4.0, -4.0, -2.0, 0.0, 1.0, 2.0, 2.0]
        );
        assert_eq!(points.at(f64::NAN), 2.0);
        let values = Curve::Values(vec![3.0, 1.0]);
        assert_eq!([0.0, 1.0, 2.0, -1.0].map(|x| values.at(x)), [3.0, 1.0, 1.0, 3.0]);
        let line = Curve::Line { scale: 2.0, offset: -1.0 };
        assert_eq!((line.at(0.5), line.to_string()), (0.0, " x 2 - 1".into()));
    }
}
