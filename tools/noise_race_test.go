//go:build race

package tools

// noiseBytes is less here: under the race detector a gigabyte takes as long as ten.
const noiseBytes = 1_000_000_000
