# make demo    drive a simulated car in the browser       PORT=8080 CLIP=file.mp4 LINKS=lte-driving RATE=60
# make test    everything that must hold, as CI runs it
# make bench   how fast the parts are
# make numbers how the whole does on a clip               CLIP=file.mp4

SHELL := bash
.DEFAULT_GOAL := help
export CARGO_TERM_COLOR ?= never

PORT ?= 8080
LINKS ?= lte-driving
CLIP ?=
RATE ?=
SECONDS_LONG ?= 30
BINARY := $(or $(CARGO_TARGET_DIR),target)/release/tautline

.PHONY: help demo test bench numbers console build lint deny unit browser tools

help:
	@sed -n '1,/^$$/s/^# //p' Makefile

demo: build
	@$(if $(CLIP),./setup ffmpeg)
	@$(BINARY) demo --console 127.0.0.1:$(PORT) --links $(LINKS) $(if $(CLIP),--clip "$(CLIP)") $(if $(RATE),--pictures-per-second $(RATE))

test: lint deny unit browser

bench:
	cargo bench --workspace --bench block --bench points --bench link --bench render --bench strip

numbers: build
	@test -n "$(CLIP)" || { echo "say which clip: make numbers CLIP=file.mp4"; exit 2; }
	@./setup ffmpeg
	@$(BINARY) lab clip --clip "$(CLIP)" --links direct --seconds $(SECONDS_LONG)
	@$(BINARY) lab clip --clip "$(CLIP)" --links lte-driving --seconds $(SECONDS_LONG)

build: console
	cargo build --release --package tautline

console: console/dist/index.html

console/node_modules/.package-lock.json: console/package-lock.json | tools
	cd console && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

console/dist/index.html: console/node_modules/.package-lock.json $(shell find console/src console/index.html console/*.json console/*.ts -type f 2>/dev/null)
	cd console && npm run --silent build

# What a fresh machine lacks: a C++ compiler for the H.264 encoder and nasm for its speed.
tools:
	@./setup c++ nasm

lint: console
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo xtask tidy
	cd console && npm run --silent check

deny:
	@./setup cargo-deny
	cargo deny --all-features --locked check --hide-inclusion-graph licenses bans sources

unit: console
	@./setup ffmpeg
	cargo test --workspace --locked
	cd console && npm test --silent

browser: build
	@./setup ffmpeg chromium
	cd console && npm run --silent e2e
