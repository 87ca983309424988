//go:build linux

package sandbox

import (
	"os/exec"
	"slices"
	"testing"
	"time"
)

// BenchmarkTrue tells what a rung adds to the start and end of a command in a box: p50 of each beside that of plain exec in the same
// moments, since the machine's load changes both. "pause" is a command a tenth of a second, "rush" one after the other.
func BenchmarkTrue(b *testing.B) {
	rs, _ := offered()
	for _, r := range rs {
		for name, pause := range map[string]time.Duration{"pause": 100 * time.Millisecond, "rush": 0} {
			b.Run(string(r)+"/"+name, func(b *testing.B) { benchTrue(b, r, pause) })
		}
	}
}

func benchTrue(b *testing.B, r rung, pause time.Duration) {
	box := &Box{live: map[*Process]bool{}}
	begun := time.Now()
	if _, err := box.space.open(Policy{Writable: []string{b.TempDir()}}, r); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(time.Since(begun).Microseconds())/1000, "open-ms")
	defer box.Close()
	tick := time.NewTicker(max(pause, 1))
	defer tick.Stop()
	var plain, ours []time.Duration
	for b.Loop() {
		<-tick.C
		begun := time.Now()
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
		plain = append(plain, time.Since(begun))
		begun = time.Now()
		p, err := box.Start(&exec.Cmd{Path: "/bin/true", Dir: "/"})
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
	b.ReportMetric(median(ours)/median(plain), "ratio")
}

func median(ds []time.Duration) float64 {
	slices.Sort(ds)
	return float64(ds[len(ds)/2].Microseconds()) / 1000
}
