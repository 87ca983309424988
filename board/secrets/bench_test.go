package secrets

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// cleanText is source code and prose of this package, over and over: full of escapes, addresses and the beginnings of keys.
func cleanText(b *testing.B) string {
	var text strings.Builder
	for text.Len() < 1<<20 {
		for _, name := range []string{"match.go", "stream.go", "secrets.go", "environment.go"} {
			data, err := os.ReadFile(name)
			if err != nil {
				b.Fatal(err)
			}
			text.Write(data)
		}
	}
	return text.String()
}

// BenchmarkCleanText is the price of text without secrets, beside that of one bytes.Index for one value over the same text.
func BenchmarkCleanText(b *testing.B) {
	text := cleanText(b)
	b.Run("bytes.Index", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		data, value := []byte(text), []byte("Kq7xv-0123456789-abcdefghij-0")
		for b.Loop() {
			if bytes.Contains(data, value) {
				b.Fatal("found")
			}
		}
	})
	for _, n := range []int{0, 1, 10, 100} {
		values := map[string]string{}
		for i := range n {
			values[fmt.Sprintf("K%d", i)] = fmt.Sprintf("Kq7xv/%09d+%c%c%c%c%c%c%c%c", i*7654321, 'a'+i%26, 'b'+i%13, 'A'+i%17, 'e'+i%5, 'F'+i%11, 'g'+i%7, 'h'+i%3, 'i'+i%2)
		}
		r := redactor(b, values)
		b.Run(fmt.Sprintf("values=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if len(r.String(text)) != len(text) {
					b.Fatal("changed")
				}
			}
		})
	}
}

// BenchmarkNew is the price of a Redactor: one a process, and one a job that has secrets of its own.
func BenchmarkNew(b *testing.B) {
	values := map[string]string{}
	for i := range 10 {
		values[fmt.Sprintf("K%d", i)] = fmt.Sprintf("Kq7xv/%09d+abcdefghijklmnop%d", i*7654321, i)
	}
	b.ReportAllocs()
	for b.Loop() {
		redactor(b, values)
	}
}
