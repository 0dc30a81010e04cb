# make demo    drive a simulated machine in the browser   MACHINE=car|robot|rover|cart PORT=8080 CLIP=file.mp4 LINKS=lte-driving RATE=60
# make test    everything that must hold, as CI runs it
# make outside   fuzz targets, benches, the Python crate and fewer features still compile: two minutes that `make test` leaves out
# make bench   speed of the parts, the erasure codes compared with others
# make bench-relay   CPU time of a relay for 8 Gbit, compared with coturn
# make bench-messages   serialization codecs compared with ours, speed and safety   DATA=../shared/data
# make testbed the kernel in which transports are compared, built once
# make smoke   every transport of this machine's own kernel, over the loopback interface
# make transports   transports of the kernel compared with ours, hours; resumes where it stopped   QUICK=1 JOBS=2
# make faults  processes, threads and links fail, each stopped and killed; each stops the machine
# make blocked a drive where the network lets no UDP pass, with its latency
# make nat    both ends behind NATs of every behaviour, in network namespaces   EVERY=10 takes every tenth pair
# make tun    sockets of the kernel over emulated links, as devices between network namespaces; root
# make c       the machine's side in C, compiled for a microcontroller and compared with Rust's
# make wheel   the Python package, a wheel in target/wheel   TARGET=aarch64-unknown-linux-gnu
# make python  the Python package behind the real guard: slow, hanging, failing, killed
# make wheel-arm64   the Python package for 64-bit ARM, tried on an emulated processor
# make walk-python   a newcomer's walk in Python, from the wheel to a robot of one's own that is driven
# make can     signals of CAN messages packed and unpacked as cantools does
# make ros    the ROS 2 package on real DDS, by the wheels of Jazzy and Kilted; its robot driven in the browser
# make kills   relays and switchboard killed, stopped and cut off while driving   KILLS=20 times each
# make chaos   ten thousand short sessions with random faults   CHAOS=10000
# make drives  ten thousand simulated drives under the guard, sound and faulty   DRIVES=10000
# make properties   property tests on new random input    CASES=4096 for each test that names no number
# make fuzz    hostile bytes for every parser    SECONDS=600 for each target
# make miri    no undefined behaviour in the erasure codes, every kernel
# make lab     the papers' tables and figures compared with ours; resumes where it was stopped   QUICK=1
# make mutate  for every experiment a changed constant of the product, which it must notice; resumes likewise   ONLY=lte-fig-9
# make numbers latency and quality of a clip through the whole system   CLIP=file.mp4
# make latency from capture to canvas, stage by stage     MINUTES=60 RATE=30 LINKS=lte-driving ENCODER=own
# make delays  delays of a page in Chromium, recorded for `make drives`   MINUTES=5 LINKS=lte-driving OUT=crates/guard/tests/drives/recorded.csv
# make machines   robot, rover and cart driven in Chromium by keys, pad and touch, with their axes; wants an idle machine
# make settings   docs/settings.md, from the code
# make book    the pages of docs as a book, in target/book
# make deb     a Debian package of the binary and its services
# make walk    a newcomer's walk, from the package on two machines to a driven picture; root
# make container   an image with only the binary   CONTAINER=podman
# make loss    slices lost at random stop no decoder      PICTURES=10000

SHELL := bash
.DEFAULT_GOAL := help
export CARGO_TERM_COLOR ?= never

PORT ?= 8080
LINKS ?= lte-driving
CLIP ?=
QUICK ?=
RATE ?=
SECONDS_LONG ?= 30
SECONDS ?= 600
CHAOS ?= 10000
DRIVES ?= 10000
CASES ?= 4096
MINUTES ?= 1
ENCODER ?=
OUT ?=
PICTURES ?= 10000
FUZZ_BYTES := 4096
# Features of the binary in addition to those of the demo.
FEATURES ?=
# All features that need no foreign library: `make test` builds everything once, with these.
FEATURES_TESTED := quorum
TEST := cargo test --workspace --locked --no-fail-fast --features "$(FEATURES_TESTED)"
X86_FEATURES := +ssse3,+avx2,+gfni,+avx512f,+avx512bw
BINARY := $(or $(CARGO_TARGET_DIR),target)/release/tautline

.PHONY: machines c ros wheel wheel-arm64 python walk-python ahead settings book deb container nat tun can kills help demo test bench bench-relay bench-messages testbed transports smoke peers faults blocked chaos drives properties fuzz miri lab mutate numbers console build lint style clippy latency delays loss bare outside deny unit browser tools nightly walk

help:
	@sed -n '1,/^$$/s/^# //p' Makefile

demo: build
	@$(if $(CLIP),./setup ffmpeg)
	@$(BINARY) demo --console 127.0.0.1:$(PORT) --links $(LINKS) $(if $(CLIP),--clip "$(CLIP)") $(if $(MACHINE),--machine $(MACHINE)) $(if $(RATE),--pictures-per-second $(RATE))

test: ahead lint deny unit browser

# Installs the tools of later steps while the first ones compile; each step asks again, and waits until they are there.
ahead:
	@./setup c++ nasm x264 isal ffmpeg chromium python flatbuffers >/dev/null 2>&1 &

bench:
	cargo bench --workspace --bench block --bench stream --bench points --bench path --bench virtual_time --bench link --bench render --bench strip
	@$(MAKE) --no-print-directory peers

peers:
	@./setup c++ isal
	cargo run --release --locked --manifest-path bench/peers/Cargo.toml

# Needs an otherwise idle machine.
bench-relay: build
	@./setup c++ isal coturn
	cargo run --release --locked --manifest-path bench/peers/Cargo.toml --bin relay -- --tautline $(abspath $(BINARY))

# The lab shows the results, and the machine.
DATA ?= ../shared/data
bench-messages:
	@./setup codecs
	cargo run --release --locked --manifest-path bench/codecs/Cargo.toml --features c,cpp,go,java -- --data "$(DATA)" --csv crates/lab/src/papers/serialization/codecs.csv
	@printf '{\n  "machine": { "processor": "%s", "kernel": "%s" },\n  "date": "%s"\n}\n' \
		"$$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -1)" "$$(uname -r)" "$$(date -u +%F)" \
		>crates/lab/src/papers/serialization/codecs.machine.json

# The kernel is stored outside of this checkout.
KERNEL := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/tautline/testbed
# One file for each cell, so that the matrix resumes where it stopped.
CELLS := $(or $(CARGO_TARGET_DIR),target)/transports
CAR := crates/lab/src/papers/car
testbed:
	@./setup testbed
	@bench/testbed/kernel/build $(KERNEL)

# The lab shows the result, except with QUICK=1, which writes next to the cells. TABLE=1 runs no cell, and makes the
# table from the present cells; lines without cells stay, unless ANEW=1. JOBS=2: two cells at once, in namespaces.
TABLE ?=
ANEW ?=
JOBS ?= 1
transports: testbed
	@./setup ffmpeg
	@mkdir -p $(CELLS)
	nice -n 15 cargo run --release --locked --package testbed -- matrix --kernel $(KERNEL) --cells $(CELLS) \
		--jobs $(JOBS) $(if $(TABLE),--table) $(if $(ANEW),--anew) $(if $(QUICK),--quick --csv $(CELLS)/quick.csv --video-csv $(CELLS)/quick-video.csv \
		--wireless-csv $(CELLS)/quick-wireless.csv,\
		--pages . --csv $(CAR)/transports.csv --video-csv $(CAR)/videos.csv --wireless-csv $(CAR)/wireless.csv)
	@$(if $(QUICK),,printf '{\n  "machine": { "processor": "%s", "kernel": "%s" },\n  "date": "%s"\n}\n' \
		"$$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -1)" "6.1, User Mode Linux" "$$(date -u +%F)" \
		>$(CAR)/transports.machine.json)

# The tests that it left out; builds no kernel. `make unit` runs it with all other tests.
smoke:
	$(TEST) --bin testbed -- --nocapture every_transport

# Succeeds if a process may stop its children's threads by ptrace.
PTRACE := test "$$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" -lt 2

faults: console
	@./setup python ffmpeg chromium
	$(TEST) --test processes -- faults::
	@if $(PTRACE); then $(TEST) --test processes -- --ignored faults:: --skip blocked:: --test-threads 1; \
	else echo "not run: threads cannot be held by ptrace here"; \
		$(TEST) --test processes -- --ignored faults:: --skip blocked:: --skip by_ptrace; fi
	cd console && FAULTS=all TAUTLINE=$(abspath $(or $(CARGO_TARGET_DIR),target))/debug/tautline \
		$$($(PTRACE) && echo python3 e2e/hold.py) node --test e2e/faults.test.mjs

# A vehicle in its own network namespace, behind a network of the test that loses 2 % and delays by 20 ms each way.
blocked:
	@./setup python
	@if unshare -rn ip tuntap add dev probe0 mode tun >/dev/null 2>&1; then \
		$(TEST) --test processes -- --ignored blocked::blocked --test-threads 1 --nocapture; \
	else echo "not run: a network of its own needs root, or user namespaces with TUN (unshare -rn ip tuntap add dev probe0 mode tun)"; fi

# Mappings and filters by RFC 4787, all pairs; two layers, IPv6 alone, a NAT that moves.
EVERY ?= 1
nat: console
	@[ "$$(id -u)" = 0 ] || { echo "not run: network namespaces need root"; exit 1; }
	@./setup nftables
	NAT_EVERY=$(EVERY) $(TEST) --test processes -- --ignored nat:: --skip inside --skip kills --test-threads 1 --nocapture

# Needs /dev/net/tun too.
tun:
	@[ "$$(id -u)" = 0 ] || { echo "not run: network namespaces need root"; exit 1; }
	$(TEST) --test processes -- --ignored devices:: --test-threads 1 --nocapture

c:
	@./setup c++ arm
	@for core in cortex-m0 cortex-m4 cortex-m33; do \
		arm-none-eabi-gcc -mcpu=$$core -std=c99 -Wall -Wextra -Wpedantic -Werror -Os -c c/tautline.c -o /dev/null || exit 1; done
	cargo test --locked --package tautline-port --lib c_port

# On every message of the DBC files in ../shared/data, and a recording.
can:
	@./setup cantools
	CANTOOLS_PYTHON=$(abspath $(or $(CARGO_TARGET_DIR),target))/tools/cantools/bin/python \
		cargo test --locked --package tautline-can --test cantools -- --ignored --nocapture

# The binary and the Python package as the workspace's tests have built them. Network namespaces need root.
ROS := jazzy kilted
TARGETS = $(abspath $(or $(CARGO_TARGET_DIR),target))
ros: python
	@./setup chromium nftables $(addprefix ros-,$(ROS))
	@set -e; for it in $(ROS); do \
		echo "ROS 2 $$it"; \
		$(TARGETS)/tools/ros-$$it/bin/pip install --quiet --no-deps --force-reinstall $(TARGETS)/wheel-tested/tautline-*.whl; \
		TAUTLINE=$(TARGETS)/debug/tautline $(TARGETS)/tools/ros-$$it/bin/python -m pytest --quiet -p no:cacheprovider ros2/tautline_ros/test; \
		(cd console && ROS_PYTHON=$(TARGETS)/tools/ros-$$it/bin/python TAUTLINE=$(TARGETS)/debug/tautline \
			node --test e2e/ros2.test.mjs); \
	done

# For CPython 3.10 and later. For another processor zig links, and rustup must have the target.
WHEELS = $(or $(CARGO_TARGET_DIR),target)
PYTHON = $(abspath $(WHEELS))/tools/python/bin
MATURIN = PATH="$(PYTHON):$$PATH" CARGO_TARGET_DIR=$(abspath $(WHEELS)) $(PYTHON)/maturin build --locked --manifest-path python/Cargo.toml
TARGET ?=
wheel:
	@./setup c++ maturin $(if $(TARGET),zig)
	$(MATURIN) --release --out $(WHEELS)/wheel $(if $(TARGET),--target $(TARGET) --zig --compatibility manylinux_2_28)

# As a test build, with the parts that the workspace's tests have built.
python: console
	@./setup c++ maturin
	cargo build --locked --package tautline
	$(MATURIN) --config Cargo.toml --out $(WHEELS)/wheel-tested
	$(PYTHON)/pip install --quiet --no-deps --force-reinstall $(WHEELS)/wheel-tested/tautline-*.whl
	$(PYTHON)/mypy --strict --config-file python/pyproject.toml python/tautline
	$(PYTHON)/python -m mypy.stubtest --concise --ignore-missing-stub tautline._tautline
	TAUTLINE=$(abspath $(WHEELS))/debug/tautline $(PYTHON)/python -m pytest --quiet python/tests

wheel-arm64: console
	@$(MAKE) --no-print-directory wheel TARGET=aarch64-unknown-linux-gnu
	cargo build --locked --package tautline
	@python/arm64 $(WHEELS)/wheel/tautline-*_aarch64.whl $(WHEELS)/debug/tautline $(WHEELS)/tools/arm64

walk-python: python
	@python/walk $(WHEELS)/wheel-tested/tautline-*.whl $(WHEELS)/debug

# A second relay takes over; the session does not need the switchboard.
KILLS ?= 20
kills: console
	@[ "$$(id -u)" = 0 ] || { echo "not run: network namespaces need root"; exit 1; }
	@./setup nftables
	KILLS=$(KILLS) $(TEST) --test processes -- --ignored nat::kills --test-threads 1 --nocapture

# A failing run prints SIM_SEED=..; with that variable set it comes again, alone.
chaos:
	CHAOS=$(CHAOS) cargo test --release --locked --package tautline-transport --test chaos

# As with chaos, SIM_SEED=.. runs one again.
drives:
	DRIVES=$(DRIVES) cargo test --release --locked --package tautline-guard --test drives

# A failing case is written into proptest-regressions/, and runs first from then on.
properties:
	@./setup c++ nasm ffmpeg
	PROPTEST_CASES=$(CASES) $(TEST) --lib --tests

fuzz: nightly
	@./setup c++ cargo-fuzz
	@set -e; for target in $$(cargo +nightly fuzz list); do \
		echo "$$target: $(SECONDS) seconds"; \
		cargo +nightly fuzz run $$target -- -max_total_time=$(SECONDS) -max_len=$(FUZZ_BYTES) -timeout=10 \
			-rss_limit_mb=1024 -print_final_stats=1 -print_funcs=0 -verbosity=0; \
	done

# First the code for any CPU, then every kernel of x86-64, then those of ARM: Miri knows their instructions.
miri: export MIRIFLAGS := -Zmiri-disable-isolation
miri: nightly
	cargo +nightly miri test --locked --package tautline-fec --lib -- --skip theory::
	RUSTFLAGS="-Ctarget-feature=$(X86_FEATURES)" \
		cargo +nightly miri test --locked --package tautline-fec --lib --target x86_64-unknown-linux-gnu -- kernel::
	cargo +nightly miri test --locked --package tautline-fec --lib --target aarch64-unknown-linux-gnu -- kernel::

# Miri and fuzzing need a nightly compiler.
nightly:
	@rustup run nightly cargo miri --version 2>/dev/null || \
		{ echo "this needs a nightly compiler: rustup toolchain install nightly --component miri,rust-src"; exit 2; }

lab: FEATURES := quorum
lab: build
	@./setup ffmpeg chromium
	@$(BINARY) lab run all --resume $(if $(QUICK),--quick); status=$$?; $(BINARY) lab report && exit $$status

# Uses a checkout of the last commit below target/.
ONLY ?=
mutate: console
	@./setup c++ nasm ffmpeg chromium
	cargo xtask mutate $(ONLY)

numbers: FEATURES := lab
numbers: build
	@test -n "$(CLIP)" || { echo "say which clip: make numbers CLIP=file.mp4"; exit 2; }
	@./setup ffmpeg
	@$(BINARY) lab clip --clip "$(CLIP)" --links direct --seconds $(SECONDS_LONG)
	@$(BINARY) lab clip --clip "$(CLIP)" --links lte-driving --seconds $(SECONDS_LONG)

# Without emulated links, unless LINKS names some.
latency: LINKS := direct
latency: FEATURES := $(filter openh264,$(ENCODER))
latency: build
	@./setup chromium
	cd console && TAUTLINE=$(abspath $(BINARY)) MINUTES=$(MINUTES) PICTURES_PER_SECOND=$(RATE) ENCODER=$(ENCODER) LINKS=$(LINKS) node soak/latency.mjs

# Needs an otherwise idle machine; its load is recorded too.
delays: MINUTES := 5
delays: build
	@./setup chromium
	cd console && TAUTLINE=$(abspath $(BINARY)) MINUTES=$(MINUTES) LINKS=$(LINKS) OUT=$(abspath $(OUT)) node soak/delays.mjs

loss: FEATURES := lab
loss: build
	@./setup ffmpeg chromium
	cd console && TAUTLINE=$(abspath $(BINARY)) PICTURES=$(PICTURES) node --test e2e/decode.test.mjs

build: console
	@$(if $(FEATURES),./setup nasm)
	cargo build --release --package tautline --features "$(FEATURES)"

machines: console
	@./setup chromium
	cargo build --locked --package tautline
	cd console && TAUTLINE=$(abspath $(or $(CARGO_TARGET_DIR),target))/debug/tautline node --test e2e/machines.mjs

# A test compares the page with the code.
settings: console
	TAUTLINE_GENERATE=1 cargo test --package tautline --bin tautline settings::page

# Links and paths in its pages are checked by `cargo xtask tidy`.
MDBOOK_VERSION := 0.5.4
MDBOOK := $(or $(CARGO_TARGET_DIR),target)/tools/mdbook-$(MDBOOK_VERSION)/bin/mdbook
book: $(MDBOOK)
	$(MDBOOK) build --dest-dir $(abspath $(or $(CARGO_TARGET_DIR),target)/book)

$(MDBOOK):
	cargo install mdbook --locked --version $(MDBOOK_VERSION) --no-default-features --features search \
		--root $(patsubst %/bin/mdbook,%,$@)

# The manual page is the binary's own help.
deb: build
	@./setup cargo-deb lintian help2man
	help2man --no-info --name "drive a machine over several mobile links" --output $(BINARY).1 $(BINARY)
	gzip -9nf $(BINARY).1
	cargo deb --locked --no-build --strip --package tautline --output $(dir $(BINARY))
	lintian --fail-on error,warning $(dir $(BINARY))tautline_*.deb

# Runs the commands of docs/start.md, "Two computers: five commands", as they are there.
walk: deb
	@./setup chromium
	@packaging/walk $(dir $(BINARY))tautline_*.deb

# Static, so that the image needs nothing else: neither a base nor a libc.
CONTAINER ?= $(firstword $(shell command -v podman buildah docker))
HOST = $(shell rustc --version --verbose | sed -n 's/^host: //p')
STATIC = $(or $(CARGO_TARGET_DIR),target)/$(HOST)/release
container: console
	RUSTFLAGS="-Ctarget-feature=+crt-static" cargo build --release --locked --target $(HOST) --package tautline
	@test -n "$(CONTAINER)" || { echo "$(STATIC)/tautline is built; an image takes podman, buildah or docker"; exit 2; }
	$(CONTAINER) build --tag tautline --file packaging/container/Containerfile $(STATIC)

console: console/dist/index.html

console/node_modules/.package-lock.json: console/package-lock.json | tools
	cd console && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

console/dist/index.html: console/node_modules/.package-lock.json $(shell find console/src console/index.html console/*.json console/*.ts -type f 2>/dev/null)
	cd console && npm run --silent build

# Installs the tools that a fresh machine lacks. openh264, a part of every feature, is fast only with nasm.
tools:
	@./setup c++

# The quickest checks come first.
lint: style clippy bare

style: console
	cargo fmt --all --check
	cargo xtask tidy
	cd console && npm run --silent check

# With all features that Debian has libraries for, and the binary as the demo has it.
clippy: console
	@./setup c++ nasm x264
	cargo clippy --workspace --all-targets --locked --features "$(FEATURES_TESTED) x264" -- -D warnings
	cargo clippy --locked --package tautline -- -D warnings

# Checks the crates outside the workspace against it, with its profile, so that shared dependencies are checked once;
# checking links nothing, least of all libFuzzer. Then the lab without Raft, together with the members whose dependencies
# are checked already.
OUTSIDE := cargo check --locked --config Cargo.toml --target-dir $(or $(CARGO_TARGET_DIR),target)
outside: console
	@./setup c++ nasm isal
	$(OUTSIDE) --manifest-path fuzz/Cargo.toml --no-default-features
	$(OUTSIDE) --manifest-path bench/peers/Cargo.toml
	$(OUTSIDE) --manifest-path bench/codecs/Cargo.toml
	PYO3_NO_PYTHON=1 $(OUTSIDE) --manifest-path python/Cargo.toml
	cargo clippy --workspace --exclude tautline-lab --lib --bins --test processes --locked --features lab -- -D warnings

# The erasure codes and the guard build alone, without std, and without alloc; where one is
# installed, for a target that has neither, and the erasure codes for an ARM processor.
bare:
	cargo check --locked --manifest-path crates/fec/Cargo.toml
	@target=$$(rustup target list --installed 2>/dev/null | grep -m1 aarch64-.*-linux || true); \
	[ -z "$$target" ] || cargo check --locked --package tautline-fec --target $$target
	@target=$$(rustup target list --installed 2>/dev/null | grep -m1 -e -none || true); \
	for features in "" alloc; do \
		cargo check --locked --package tautline-fec --no-default-features --features "$$features" $${target:+--target $$target} || exit; \
	done; \
	cargo check --locked --package tautline-guard $${target:+--target $$target}

deny:
	@./setup cargo-deny
	cargo deny --all-features --locked check --hide-inclusion-graph licenses bans sources
	@if cargo deny fetch db >/dev/null 2>&1; then \
		cargo deny --all-features --frozen check --hide-inclusion-graph advisories; \
	else echo "not run: advisories need the database at https://github.com/RustSec/advisory-db"; fi

# Runs also the tests that need more than this workspace, which `cargo test` ignores. Property tests
# draw the same cases in every run; `make properties` draws others.
unit: export PROPTEST_RNG_SEED ?= 1
# Most tests of processes wait: with as many threads as cores they took twice as long.
unit: export RUST_TEST_THREADS ?= 4
unit: console
	@./setup c++ nasm ffmpeg python flatbuffers
	$(TEST)
	$(TEST) --test readers --test evolution -- --ignored
	@if unshare -rn ip link >/dev/null 2>&1; then \
		$(TEST) --test interfaces -- --ignored --skip inside; \
	else echo "not run: the tests of interfaces that go and come need user namespaces (unshare -rn ip link)"; fi
	@if unshare -rn ip link add dev vcan7 type vcan >/dev/null 2>&1; then \
		$(TEST) --test can_bus -- --ignored --skip inside; \
	else echo "not run: the test of CAN sockets needs vcan in a user namespace (modprobe vcan can_raw)"; fi
	@if [ -d ../shared/data/links ]; then \
		$(TEST) --lib -- --ignored record; \
	else echo "not run: the tests on recordings need those in ../shared/data"; fi
	@if ffmpeg -hide_banner -filters 2>/dev/null | grep -q libvmaf; then \
		$(TEST) --lib -- --ignored vmaf; \
	else echo "not run: the test of VMAF needs an ffmpeg with libvmaf"; fi
	cd console && npm test --silent

# Uses the binary that `unit` has built: another profile or set of features would build much again.
browser: console
	@./setup ffmpeg chromium
	$(TEST) --test processes --no-run
	cd console && TAUTLINE=$(abspath $(or $(CARGO_TARGET_DIR),target))/debug/tautline npm run --silent e2e
