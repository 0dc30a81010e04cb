//! The vehicle's settings.

use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};
use tautline_net::Local;
use tautline_net::control::Host;
use tautline_net::datagram::Address;
use tautline_net::file;
use tautline_net::settings::{Faults, one_or_several};
use tautline_net::topics::Topic;
use tautline_transport::crypto::PublicKey;
use tautline_units::Bounded;
use tautline_video::v4l2::{Wanted, check_device};
use tautline_video::{Backend, avc};

use crate::camera_address::CameraAddress;
use crate::geometry::CameraGeometry;

/// Settings of a vehicle; each field has a flag of the same name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Name of the vehicle at the switchboard.
    pub name: String,
    /// Description of the vehicle's location; the switchboard shows it where people choose a
    /// vehicle.
    pub place: Option<String>,
    /// File of the vehicle's secret key.
    pub key: PathBuf,
    /// Address of the switchboard, `host:port`.
    pub switchboard: String,
    /// Public key of the switchboard, 64 hexadecimal digits.
    pub switchboard_key: String,
    /// File that keeps the highest lease epoch across restarts; if not given, a restart forgets it.
    pub epoch: Option<PathBuf>,
    /// Public keys of the operators that may drive.
    #[serde(alias = "operator", deserialize_with = "one_or_several")]
    pub operators: Vec<String>,
    /// Supervisors who may end a drive by an order: name and public key.
    #[serde(alias = "supervisor")]
    pub supervisors: BTreeMap<String, String>,
    /// File that records across restarts which orders were obeyed; required if there are
    /// supervisors.
    pub orders: Option<PathBuf>,
    /// Person behind each operator's public key, for the black box: a name and any other text to
    /// record.
    pub people: BTreeMap<String, String>,
    /// Local ends of the links, one per modem: an address with a port, or an interface.
    #[serde(alias = "link", deserialize_with = "one_or_several")]
    pub links: Vec<Local>,
    /// True to keep a link over TLS to an operator that offers one, for networks that block UDP.
    pub tls: bool,
    /// Video file to use in place of the simulated camera; none if not given.
    pub clip: Option<PathBuf>,
    /// Camera to use in place of the simulated one: the path of a V4L2 device, or `unix:` and that
    /// of a socket; none if not given.
    pub camera: Option<CameraAddress>,
    /// Capture mode of the device, such as `mjpeg 1280x720@30` or a part of it.
    pub camera_mode: String,
    /// Position and view of the camera, for any source of pictures; the console uses it to draw
    /// distances.
    pub camera_geometry: Option<CameraGeometry>,
    /// Pictures per second of the simulated camera, and the preferred rate of a device; a clip has
    /// its own rate.
    pub pictures_per_second: f64,
    /// Encoder of the strips.
    pub encoder: EncoderChoice,
    /// Loss recovery of Tautline's own encoder.
    pub loss_recovery: LossRecovery,
    /// For the intra refreshes: number of pictures that one takes. For `intra-columns`: distance
    /// between two refreshed columns, in macroblocks.
    pub refresh_period: u8,
    /// With reference picture selection: greatest distance in pictures from a picture to its
    /// reference.
    pub references: u8,
    /// True if Tautline's own encoder produces strips that an operator can record as complete
    /// pictures.
    pub joinable: bool,
    /// Reaction after a pause in which nothing could be sent. Pauses below 250 ms need none.
    pub after_pause: AfterPause,
    /// Reaction to a picture of uniform brightness, such as that of a covered lens.
    pub uniform_picture: Reaction,
    /// Reaction to pictures that move as a whole while the machine reports standstill.
    pub picture_motion: Reaction,
    /// Schedule of the steering check that the operator is asked for after arming.
    pub steering_check: SteeringCheck,
    /// File that records the steering check across restarts; if not given, a restart forgets it.
    pub steering_checked: Option<PathBuf>,
    /// Machine that carries the simulated camera.
    pub machine: SimulatedMachine,
    /// Seed of the simulated machine.
    pub seed: u64,
    /// Address that serves `/metrics`; not served if not given.
    pub metrics: Option<SocketAddr>,
    /// Address at which the guard listens for the vehicle.
    pub guard: Address,
    /// Topics of other programs to carry to the operator.
    pub topics: Vec<Topic>,
    /// Addresses of local programs, by topic of the operator; a program gets each unit of its topic
    /// as a datagram.
    pub deliver: BTreeMap<String, Address>,
    /// Settings of the multi-link transport.
    pub transport: tautline_transport::Config,
}

/// Source of pictures other than the simulated camera.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PictureSource<'a> {
    /// The V4L2 device at this path.
    Camera(&'a Path),
    /// The Unix socket at this path, at which the vehicle listens for a program.
    Socket(&'a Path),
    /// The video file at this path.
    Clip(&'a Path),
}

impl PictureSource<'_> {
    /// Checks that the clip or device exists and is of the right kind, without opening it; nothing
    /// is checked of a socket, whose program may begin later.
    ///
    /// # Errors
    /// Returns one line that says what is wrong.
    pub fn check(&self) -> anyhow::Result<()> {
        match self {
            Self::Clip(file) => check_clip(file)?,
            // The program may begin later.
            Self::Socket(_) => {}
            Self::Camera(file) => {
                let at = file.display();
                check_device(file).map_err(|error| match error.kind() {
                    ErrorKind::NotFound => anyhow!("there is no camera {at}: is it plugged in?"),
                    _ => anyhow!("{at} is not a camera that delivers pictures: {error}"),
                })?;
            }
        }
        Ok(())
    }
}

/// Checks that `path` names a regular, non-empty file, which can be read repeatedly from its
/// beginning.
fn check_clip(path: &Path) -> anyhow::Result<()> {
    let at = path.display();
    file::check_regular(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow!("there is no clip {at}: give the path of a video file"),
        ErrorKind::PermissionDenied => anyhow!("this user may not read the clip {at}"),
        _ => anyhow!("cannot use {at} as a clip: {error}; give the path of a video file"),
    })
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: "car-1".into(),
            place: None,
            key: "vehicle.key".into(),
            switchboard: "127.0.0.1:7443".into(),
            switchboard_key: String::new(),
            epoch: None,
            operators: Vec::new(),
            supervisors: BTreeMap::new(),
            orders: None,
            people: BTreeMap::new(),
            links: vec![Local::default()],
            tls: true,
            clip: None,
            camera: None,
            camera_mode: String::new(),
            camera_geometry: None,
            pictures_per_second: 60.0,
            encoder: EncoderChoice::default(),
            loss_recovery: LossRecovery::default(),
            refresh_period: 8,
            references: 16,
            joinable: false,
            after_pause: AfterPause::default(),
            uniform_picture: Reaction::default(),
            picture_motion: Reaction::default(),
            steering_check: SteeringCheck::default(),
            steering_checked: None,
            machine: SimulatedMachine::default(),
            seed: 1,
            metrics: None,
            guard: Address::Path(GUARD.into()),
            topics: Vec::new(),
            deliver: BTreeMap::new(),
            transport: tautline_transport::Config::default(),
        }
    }
}

impl Config {
    /// Checks every setting; opens no file.
    ///
    /// # Errors
    /// Returns one line per fault, which names the field, what is wrong and the remedy.
    pub fn validate(&self) -> anyhow::Result<()> {
        let mut faults = Faults::default();
        faults.unless(!self.name.is_empty(), || {
            "name is empty: give the vehicle's name with --name".to_owned()
        });
        let place = self.place.as_ref().map_or(1, String::len);
        faults.of(Bounded::size("place", place, 1..=PLACE_BYTES_MAX, "bytes").check());
        let rate = Bounded::new("pictures_per_second", self.pictures_per_second, 1.0..=60.0);
        faults.of(rate.in_unit("pictures per second").check());
        faults.unless(self.clip.is_none() || self.camera.is_none(), || {
            "clip and camera are both given: use only one of them".to_owned()
        });
        faults.of(self.camera_mode());
        if let Some(geometry) = &self.camera_geometry {
            faults.of(geometry.validate());
        }
        let period = Bounded::new("refresh_period", self.refresh_period.into(), 2.0..=250.0);
        faults.of(period.in_unit("pictures").check());
        let references = Bounded::new("references", self.references.into(), 1.0..=16.0);
        faults.of(references.in_unit("pictures").check());
        faults.unless(self.backend().is_built(), || {
            format!(
                "encoder: this binary was built without {0}: build it with --features {0}",
                self.encoder
            )
        });
        faults.unless(!self.joinable || self.encoder == EncoderChoice::Own, || {
            format!(
                "joinable: encoder = {} does not support it: use Tautline's own with --encoder own",
                self.encoder
            )
        });
        faults.of(Topic::validate(&self.topics));
        faults.unless(!self.links.is_empty(), || {
            "links is empty: give at least one local address or interface with --link".to_owned()
        });
        faults.unless(!self.operators.is_empty(), || {
            "no operator may drive: give at least one public key with --operator".to_owned()
        });
        let operators = faults.of(self.operator_keys());
        let is_read = operators.is_some();
        let operators = operators.unwrap_or_default();
        for (key, name) in &self.people {
            let listed = !is_read || key.parse().is_ok_and(|key| operators.contains(&key));
            faults.unless(listed, || format!("people: {key:?} is not one of the operators' keys"));
            faults.of(Bounded::size("people", name.len(), 1..=PERSON_BYTES_MAX, "bytes").check());
        }
        let supervisors = faults.of(self.supervisor_keys());
        let are_own = supervisors.as_ref().is_none_or(|keys| keys.len() == self.supervisors.len());
        let supervisors = supervisors.unwrap_or_default();
        faults.unless(are_own, || {
            "supervisors: two of them have the same key: each needs its own".to_owned()
        });
        faults.unless(supervisors.keys().all(|key| !operators.contains(key)), || {
            "supervisors: an operator has the same key: a supervisor needs its own".to_owned()
        });
        faults.unless(supervisors.is_empty() || self.orders.is_some(), || {
            "orders is missing: a vehicle with supervisors records obeyed orders in this file"
                .to_owned()
        });
        faults.of(self.switchboard.parse::<Host>().context("switchboard"));
        faults.of(self.switchboard_public_key());
        faults.all(self.transport.faults());
        faults.finish()
    }

    /// Returns the source that replaces the simulated camera; `None` if none is set.
    pub fn source(&self) -> Option<PictureSource<'_>> {
        let camera = self.camera.as_ref().map(|camera| match camera {
            CameraAddress::Device(path) => PictureSource::Camera(path),
            CameraAddress::Socket(path) => PictureSource::Socket(path),
        });
        camera.or_else(|| self.clip.as_deref().map(PictureSource::Clip))
    }

    /// Returns the capture mode of the device.
    ///
    /// # Errors
    /// Returns one line that says which part is invalid.
    pub fn camera_mode(&self) -> anyhow::Result<Wanted> {
        self.camera_mode.parse().map_err(|error| anyhow::anyhow!("camera_mode: {error}"))
    }

    /// Returns the encoder to use for every strip, with its loss recovery; openh264 does not use
    /// the configured one.
    pub fn backend(&self) -> Backend {
        let (period, references) = (self.refresh_period, self.references);
        let loss_recovery = match self.loss_recovery {
            LossRecovery::Idr => avc::LossRecovery::Idr,
            LossRecovery::IntraRefresh => avc::LossRecovery::IntraRefresh { period },
            LossRecovery::IntraColumns => avc::LossRecovery::IntraColumns { spacing: period },
            LossRecovery::IntraRefreshOnLoss => avc::LossRecovery::IntraRefreshOnLoss { period },
            LossRecovery::AcknowledgedReferences => {
                avc::LossRecovery::AcknowledgedReferences { references }
            }
            LossRecovery::ReferenceSelection => {
                avc::LossRecovery::ReferenceSelection { references }
            }
            LossRecovery::ReferencesByLoss => avc::LossRecovery::ReferencesByLoss { references },
        };
        match self.encoder {
            EncoderChoice::Openh264 => Backend::Openh264,
            EncoderChoice::Own if self.joinable => Backend::JoinableAvc(loss_recovery),
            EncoderChoice::Own => Backend::Avc(loss_recovery),
        }
    }

    /// Returns the operators' keys.
    ///
    /// # Errors
    /// Returns one line that names the malformed key.
    pub fn operator_keys(&self) -> anyhow::Result<Vec<PublicKey>> {
        self.operators
            .iter()
            .map(|text| text.parse().with_context(|| format!("operators: {text:?}")))
            .collect()
    }

    /// Returns the supervisors' keys, each with its owner's name.
    ///
    /// # Errors
    /// Returns one line that names the malformed key.
    pub fn supervisor_keys(&self) -> anyhow::Result<BTreeMap<PublicKey, String>> {
        let known = |(name, text): (&String, &String)| {
            let key = text.parse().with_context(|| format!("supervisors: {name}: {text:?}"))?;
            Ok((key, name.clone()))
        };
        self.supervisors.iter().map(known).collect()
    }

    /// Returns the switchboard's key.
    ///
    /// # Errors
    /// Returns one line that says that it is missing or malformed.
    pub fn switchboard_public_key(&self) -> anyhow::Result<PublicKey> {
        ensure!(
            !self.switchboard_key.is_empty(),
            "switchboard_key is missing: `tautline keys show` prints it from the switchboard's key"
        );
        self.switchboard_key
            .parse()
            .with_context(|| format!("switchboard_key: {:?}", self.switchboard_key))
    }
}

/// Maximum length in bytes of a text in `people`, beyond which it is refused: the space that a
/// record of the black box leaves for it.
const PERSON_BYTES_MAX: usize = 256;
/// Maximum length in bytes of `place`, the same as in messages of the control plane; a longer one
/// is refused.
const PLACE_BYTES_MAX: usize = 32;
/// Default address at which the guard listens for the vehicle.
const GUARD: &str = "/run/tautline/vehicle.sock";

/// Defines the names of a setting's choices in files and flags.
macro_rules! named {
    ($choice:ident: $($name:literal $variant:ident),+) => {
        impl FromStr for $choice {
            type Err = anyhow::Error;

            fn from_str(name: &str) -> anyhow::Result<Self> {
                match name {
                    $($name => Ok(Self::$variant),)+
                    _ => bail!("{name:?} is not one of {}", [$($name),+].join(", ")),
                }
            }
        }

        impl fmt::Display for $choice {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$variant => $name,)+
                })
            }
        }
    };
}

/// Choice of the strips' encoder.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EncoderChoice {
    /// Tautline's own encoder.
    #[default]
    Own,
    /// Cisco's OpenH264 library; it recovers from losses by IDRs.
    Openh264,
}

named!(EncoderChoice: "own" Own, "openh264" Openh264);

/// Loss recovery of Tautline's own encoder: see [`avc::LossRecovery`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossRecovery {
    /// One IDR per reported loss.
    Idr,
    /// A band of refreshed columns that crosses the picture continuously.
    IntraRefresh,
    /// Refreshed columns spread over the picture, each moving by one column per picture.
    IntraColumns,
    /// One intra refresh per reported loss.
    IntraRefreshOnLoss,
    /// Prediction from acknowledged pictures only.
    AcknowledgedReferences,
    /// Prediction from an acknowledged picture once per reported loss.
    ReferenceSelection,
    /// Reference selection while losses are few, acknowledged pictures only while they are many.
    #[default]
    ReferencesByLoss,
}

named!(LossRecovery: "idr" Idr, "intra-refresh" IntraRefresh, "intra-columns" IntraColumns,
    "intra-refresh-on-loss" IntraRefreshOnLoss, "acknowledged-references" AcknowledgedReferences,
    "reference-selection" ReferenceSelection, "references-by-loss" ReferencesByLoss);

/// Reaction after a pause of 250 ms or more in which nothing could be sent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterPause {
    /// Each strip recovers by its encoder's own method, within its budget.
    #[default]
    Recover,
    /// Each strip begins again with an IDR.
    Idr,
}

named!(AfterPause: "recover" Recover, "idr" Idr);

/// Simulated machine of the test track.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SimulatedMachine {
    /// A car.
    #[default]
    Car,
    /// A delivery robot on two driven wheels.
    Robot,
    /// A rover on tracks.
    Rover,
    /// A cart on mecanum wheels, which also drives sideways.
    Cart,
}

named!(SimulatedMachine: "car" Car, "robot" Robot, "rover" Rover, "cart" Cart);

/// Reaction to a fault that is visible in the picture.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reaction {
    /// Warn the operator.
    #[default]
    Warn,
    /// Stop the machine as well.
    Stop,
}

named!(Reaction: "warn" Warn, "stop" Stop);

/// Schedule of the steering check that the operator is asked for after arming.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SteeringCheck {
    /// At each drive until a check has been completed.
    #[default]
    FirstDrive,
    /// At every drive.
    EveryDrive,
    /// Never.
    Never,
}

named!(SteeringCheck: "first-drive" FirstDrive, "every-drive" EveryDrive, "never" Never);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supervisors_need_unique_keys_and_an_orders_file() {
        let key = |seed: u8| {
            tautline_transport::crypto::Identity::from_seed(&[seed; 32]).public().to_string()
        };
        let with = |supervisors: &[(&str, String)], orders: Option<&str>| {
            let supervisors = supervisors.iter().map(|(name, key)| ((*name).into(), key.clone()));
            let config = Config {
                operators: vec![key(1)],
                switchboard_key: key(2),
                supervisors: supervisors.collect(),
                orders: orders.map(PathBuf::from),
                ..Config::default()
            };
            config.validate().map_err(|error| format!("{error:#}")).err().unwrap_or_default()
        };
        assert_eq!(with(&[("eva", key(3)), ("udo", key(4))], Some("orders")), "");
        assert_eq!(with(&[], None), "");
        assert!(with(&[("eva", key(3))], None).starts_with("orders is missing"));
        assert!(with(&[("eva", key(3)), ("udo", key(3))], Some("o")).contains("the same key"));
        assert!(with(&[("eva", key(1))], Some("o")).contains("an operator has the same key"));
        assert!(with(&[("eva", "12".into())], Some("o")).starts_with("supervisors: eva: \"12\""));
    }

    #[test]
    fn an_unreadable_source_is_reported_by_its_file() {
        PictureSource::Camera(Path::new("/dev/null")).check().unwrap();
        let words = |source: PictureSource<'_>| source.check().unwrap_err().to_string();
        let (clip, camera) = (PictureSource::Clip, PictureSource::Camera);
        assert!(
            words(clip(Path::new("/no/such.mp4"))).starts_with("there is no clip /no/such.mp4")
        );
        assert!(
            words(clip(Path::new("/dev"))).starts_with("cannot use /dev as a clip: it is a folder")
        );
        assert!(
            words(camera(Path::new("/no/video0"))).starts_with("there is no camera /no/video0")
        );
        assert!(words(camera(Path::new("/dev"))).starts_with("/dev is not a camera"));
    }

    #[test]
    fn encoder_and_loss_recovery_names_select_the_backend() {
        let named = |encoder: &str, loss_recovery: &str| {
            let (encoder, loss_recovery) =
                (encoder.parse().unwrap(), loss_recovery.parse().unwrap());
            Config { encoder, loss_recovery, ..Config::default() }.backend()
        };
        assert_eq!(named("openh264", "intra-refresh"), Backend::Openh264);
        assert_eq!(
            named("own", "intra-refresh-on-loss"),
            Backend::Avc(avc::LossRecovery::IntraRefreshOnLoss { period: 8 })
        );
        assert_eq!(
            named("own", "reference-selection"),
            Backend::Avc(avc::LossRecovery::ReferenceSelection { references: 16 })
        );
        let encoder = EncoderChoice::Openh264;
        let joinable = Config { encoder, joinable: true, ..Config::default() };
        assert!(joinable.validate().unwrap_err().to_string().contains("--encoder own"));
        let joinable = Config { encoder: EncoderChoice::Own, ..joinable };
        assert!(matches!(
            joinable.backend(),
            Backend::JoinableAvc(avc::LossRecovery::ReferencesByLoss { .. })
        ));
        let refused = "x265".parse::<EncoderChoice>().unwrap_err().to_string();
        assert_eq!(refused, "\"x265\" is not one of own, openh264");
        for name in [
            "idr",
            "intra-refresh",
            "intra-columns",
            "intra-refresh-on-loss",
            "acknowledged-references",
            "reference-selection",
            "references-by-loss",
        ] {
            assert_eq!(name.parse::<LossRecovery>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn where_the_camera_looks_is_checked_with_the_rest() {
        let config = |field_of_view: f64| {
            let camera_geometry = Some(CameraGeometry {
                height: 1.4,
                pitch: 0.0,
                field_of_view,
                to_front: 2.1,
                to_rear_axle: 1.35,
                width: 1.8,
                wheelbase: 2.6,
            });
            Config { camera_geometry, ..Config::default() }
        };
        let refused = |field_of_view| config(field_of_view).validate().unwrap_err().to_string();
        assert!(refused(180.0).contains("\n  camera_geometry.field_of_view_degrees"));
        let sound = refused(70.0);
        assert!(sound.contains("\n  no operator") && !sound.contains("camera"), "{sound}");
    }
}
