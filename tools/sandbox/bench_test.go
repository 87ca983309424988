//go:build linux

package sandbox

import (
	"os/exec"
	"slices"
	"testing"
	"time"
)

// BenchmarkTrue tells what a rung adds to the start and end of a command: p50 of each beside that of plain exec in the same
// moments, since the machine's load changes both.
func BenchmarkTrue(b *testing.B) {
	rs, _ := offered()
	for _, r := range rs {
		b.Run(string(r), func(b *testing.B) {
			var plain, ours []time.Duration
			for b.Loop() {
				begun := time.Now()
				if err := exec.Command("/bin/true").Run(); err != nil {
					b.Fatal(err)
				}
				plain = append(plain, time.Since(begun))
				begun = time.Now()
				p, err := start(exec.Command("/bin/true"), []string{path}, r)
				if err != nil {
					b.Fatal(err)
				}
				if e, err := p.Wait(); err != nil || e.Code != 0 {
					b.Fatalf("%+v, %v", e, err)
				}
				ours = append(ours, time.Since(begun))
			}
			b.ReportMetric(median(plain), "plain-p50-ms")
			b.ReportMetric(median(ours), "p50-ms")
			b.ReportMetric(median(ours)-median(plain), "added-p50-ms")
		})
	}
}

func median(ds []time.Duration) float64 {
	slices.Sort(ds)
	return float64(ds[len(ds)/2].Microseconds()) / 1000
}
