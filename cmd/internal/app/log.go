package app

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"muster/budget"
)

// LogFlag chooses how much the operator hears.
func LogFlag(level string) cli.Flag {
	return &cli.StringFlag{Name: "log-level", Value: level, EnvVars: []string{"MUSTER_LOG_LEVEL"}, Usage: "debug, info, warn, error or off; log lines go to stderr"}
}

// Lines is where log lines go: a file, or through whoever draws on the same terminal meanwhile.
type Lines struct {
	f       *os.File
	mu      sync.Mutex
	through func([]byte)
}

// Through hands every line to fn from now on, which writes it; nil: they go straight to the file again. It returns when no line is on the old way any more.
func (l *Lines) Through(fn func([]byte)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.through = fn
}

// Write writes one line. What a terminal would obey becomes \u escapes, but for the colours of the console writer and the newline: it has quoted
// the old control characters, as JSON has.
func (l *Lines) Write(p []byte) (int, error) {
	line := []byte(escapeJSON(string(p)))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.through != nil {
		l.through(line)
		return len(p), nil
	}
	if _, err := l.f.Write(line); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Terminal says whether the lines end up on one that can be redrawn.
func (l *Lines) Terminal() bool { return Interactive(l.f) }

// Logger makes the program's logger into f: lines for people on a terminal, JSON elsewhere, without what is Hidden.
func Logger(f *os.File, level string) (zerolog.Logger, *Lines, error) {
	if level == "off" {
		level = "disabled"
	}
	l, err := zerolog.ParseLevel(level)
	if err != nil || level == "" {
		return zerolog.Nop(), nil, Usage("--log-level %q: there are debug, info, warn, error and off", level)
	}
	lines := &Lines{f: f}
	w := records{to: lines}
	if term.IsTerminal(int(f.Fd())) {
		w.to = zerolog.ConsoleWriter{Out: lines, TimeFormat: time.TimeOnly, NoColor: !colour(f), FormatMessage: messages(colour(f))}
	}
	return zerolog.New(w).Level(l).With().Timestamp().Logger(), lines, nil
}

// colour says whether to write colours: on a terminal that can, unless NO_COLOR asks not to.
func colour(f *os.File) bool { return Interactive(f) && os.Getenv("NO_COLOR") == "" }

// Interactive says whether f is a terminal on which lines can be redrawn.
func Interactive(f *os.File) bool {
	return term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// records passes on one record at a time, each a write and a line of JSON, without secrets.
type records struct{ to io.Writer }

func (r records) Write(p []byte) (int, error) {
	if _, err := r.to.Write(Hidden().JSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// messages lays out that of a record for the console: the one value that it does not quote.
func messages(bold bool) zerolog.Formatter {
	return func(m any) string {
		switch {
		case m == nil || m == "":
			return ""
		case bold:
			return "\x1b[1m" + line(fmt.Sprint(m)) + "\x1b[0m"
		}
		return line(fmt.Sprint(m))
	}
}

func oneLine(s string) string { return budget.Preview(s, 2_000) }
