use super::*;

fn delays() -> Vec<(f64, f64)> {
    vec![(0.0, 0.0), (10.0, 0.5), (20.0, 1.0)]
}

fn plot() -> Plot {
    Plot::new("a-plot", "A <plot> & more", Axis::linear("delay, ms"), Axis::linear("share"))
}

/// Returns the number of elements with this name in a well-formed SVG.
fn elements(svg: &str, name: &str) -> usize {
    let document = roxmltree::Document::parse(svg).expect("well-formed");
    document.descendants().filter(|node| node.tag_name().name() == name).count()
}

#[test]
fn every_form_is_drawn_and_named() {
    let plot = plot()
        .with(Series::marked("the paper's", delays()).published())
        .with(Series::line("a line", delays()))
        .with(Series::steps("steps", delays()).dashed())
        .with(Series::points("points", delays()))
        .with(Series::bars("bars", delays()))
        .mark_x(10.0, "half")
        .mark_y(0.95, "0.95");
    let svg = plot.to_svg().unwrap();
    assert!(elements(&svg, "polyline") >= 3 && elements(&svg, "circle") >= 3, "{svg}");
    let document = roxmltree::Document::parse(&svg).unwrap();
    let text: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
    let text = text.join(" ");
    for words in ["A <plot> & more", "delay, ms", "share", "the paper's", "steps", "half", "20"] {
        assert!(text.contains(words), "{words} in {text}");
    }
}

#[test]
fn the_same_plot_is_the_same_bytes() {
    let plot = plot().with(Series::steps("steps", delays()));
    assert_eq!(plot.to_svg().unwrap(), plot.to_svg().unwrap());
}

#[test]
fn nothing_to_draw_is_an_error() {
    assert!(plot().to_svg().is_err());
    let error = plot().with(Series::line("lost", vec![(0.0, f64::NAN)])).to_svg().unwrap_err();
    assert!(error.to_string().contains("a-plot"), "{error}");
}

#[test]
fn points_outside_an_axis_are_omitted() {
    let log = |name| Axis::log(name);
    let plot = Plot::new("logs", "Logs", log("x"), log("y"))
        .with(Series::marked("some", vec![(0.0, 1.0), (1.0, -1.0), (1.0, 10.0), (10.0, 1e9)]));
    assert!(elements(&plot.to_svg().unwrap(), "circle") >= 2);
}
