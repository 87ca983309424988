//go:build !race

package tools

// noiseBytes is what a noisy command prints in some minutes.
const noiseBytes = 10_000_000_000
