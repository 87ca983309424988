package budget

import (
	"strings"
	"testing"
)

// What shaping an output costs, beside reading it.
func BenchmarkText(b *testing.B) {
	log := strings.Repeat("2026-11-30 12:00:00 INFO  a line of an ordinary log, 中文 included\n", 4_000)
	colored := strings.ReplaceAll(log, "INFO", "\x1b[32mINFO\x1b[0m")
	bar := strings.Repeat("\r[=====>    ] 50%\x1b[K", 12_000)
	for name, run := range map[string]func(){
		"plain text":     func() { Plain(log) },
		"plain colors":   func() { Plain(colored) },
		"plain bar":      func() { Plain(bar) },
		"clip":           func() { Clip(log, 8_000, 20, "log", "read it") },
		"preview":        func() { Preview(log, 500) },
		"preview, emoji": func() { Preview(strings.Repeat("👨‍👩‍👧", 100), 500) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
		})
	}
}
