package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/rs/zerolog"

	"muster/budget"
)

const forged = "x\n{\"level\":\"info\",\"message\":\"forged\"}\r\nFORGED \x1b]0;owned\a\x1b[2J\u009b31m\u202egnp\u2066\u200b\U000e0041\u2028FORGED\x00\xff end"

func logForged(t *testing.T, log zerolog.Logger) {
	t.Helper()
	log.Warn().Str("value", forged).Err(errors.New(forged)).Strs("list", []string{forged}).Interface("any", map[string]string{forged: forged}).Msg(forged)
	log.Info().Msgf("second %s", forged)
}

// clean fails where text holds what a terminal would obey.
func clean(t *testing.T, text string) {
	t.Helper()
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 || r == '\u2028' || budget.Hidden(r) {
			t.Fatalf("%U at byte %d of %q", r, i, text)
		}
	}
}

func TestLogRecordIsOneLineOfJSON(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	log, lines, err := Logger(f, "info")
	if err != nil || lines.Terminal() {
		t.Fatal(err)
	}
	logForged(t, log)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	clean(t, string(data))
	records := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if len(records) != 2 {
		t.Fatalf("%d records: %s", len(records), data)
	}
	for _, r := range records {
		var rec struct{ Level, Value, Error, Message string }
		if err := json.Unmarshal([]byte(r), &rec); err != nil {
			t.Fatalf("%v: %s", err, r)
		}
		if want := strings.ToValidUTF8(forged, "\ufffd"); !strings.HasSuffix(rec.Message, want) || rec.Level == "warn" && (rec.Value != want || rec.Error != want) {
			t.Errorf("the record says %+v", rec)
		}
	}
}

func TestLogOnATerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	t.Setenv("TERM", "xterm")
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	log, _, err := Logger(tty, "info")
	if err != nil {
		t.Fatal(err)
	}
	var screen bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&screen, master) // ends with EIO when the terminal is closed
	}()
	logForged(t, log)
	if err := tty.Close(); err != nil {
		t.Fatal(err)
	}
	<-done
	if err := master.Close(); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(screen.String(), "\r\n", "\n")
	clean(t, text)
	if n := strings.Count(text, "\n"); n != 2 || strings.Contains(text, "\nFORGED") || strings.Contains(text, "\n{") {
		t.Errorf("%d lines: %q", n, text)
	}
	if !strings.Contains(text, "WRN") || !strings.Contains(text, "gnp") || !strings.Contains(text, "second x") {
		t.Errorf("the records are not there: %q", text)
	}
}

func TestHiddenIsNotLoggedOrReported(t *testing.T) {
	const value = "Lq7-log/secret+0123456789"
	if err := Hide(map[string]string{"LOGGED": value}); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	log, _, err := Logger(f, "debug")
	if err != nil {
		t.Fatal(err)
	}
	log.Debug().Str("v", value).Err(errors.New("with "+value)).Interface("m", map[string]string{value: value}).Msgf("message %q", value+"\n")
	var said bytes.Buffer
	Report(t.Context(), &said, "prog", &Fault{Code: 1, Err: errors.New("no " + value), Hint: "try " + value})
	Note(&said, "a line with %s", value)
	data, err := os.ReadFile(name)
	if err != nil || !json.Valid(data) {
		t.Fatalf("%v: %s", err, data)
	}
	for what, text := range map[string]string{"log": string(data), "errors": said.String()} {
		if strings.Contains(text, value) || strings.Contains(text, value[:15]) || !strings.Contains(text, "[redacted LOGGED]") {
			t.Errorf("%s: %s", what, text)
		}
	}
	if err := Hide(map[string]string{"SHORT": "abc"}); err == nil || Hidden().String(value) == value {
		t.Errorf("a value that cannot be hidden: %v", err)
	}
}

func TestReportSetsInWhatItQuotes(t *testing.T) {
	var b bytes.Buffer
	Report(t.Context(), &b, "prog", errors.New("read \"x\nprog: all is well\"\r\n\u2028\n"))
	for l := range strings.Lines(b.String()) {
		if !strings.HasPrefix(l, "prog: read") && !strings.HasPrefix(l, "  ") {
			t.Errorf("a line of its own: %q", b.String())
		}
	}
	if !strings.Contains(b.String(), "\n  prog: all is well\"\n") {
		t.Errorf("%q", b.String())
	}
}

func TestTablesAreOneLineARow(t *testing.T) {
	lines := FormatTable([]string{"A", "B"}, [][]string{{forged, "x"}, {"  indented", forged}}, 0)
	if len(lines) != 3 || strings.Contains(strings.Join(lines, ""), "\n") || !strings.HasPrefix(lines[2], "  indented") {
		t.Errorf("%q", lines)
	}
	clean(t, strings.Join(lines, "\n"))
}
