package app

import (
	"io"
	"os"
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

// Logger makes the program's logger: lines for people on a terminal, JSON elsewhere.
func Logger(w io.Writer, level string) (zerolog.Logger, error) {
	if level == "off" {
		level = "disabled"
	}
	l, err := zerolog.ParseLevel(level)
	if err != nil || level == "" {
		return zerolog.Nop(), Usage("--log-level %q: there are debug, info, warn, error and off", level)
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		w = zerolog.ConsoleWriter{Out: sanitised{w}, TimeFormat: time.TimeOnly, NoColor: !colour(f)}
	}
	return zerolog.New(w).Level(l).With().Timestamp().Logger(), nil
}

// colour says whether to write colours: on a terminal that can, unless NO_COLOR asks not to.
func colour(f *os.File) bool { return Interactive(f) && os.Getenv("NO_COLOR") == "" }

// Interactive says whether f is a terminal on which lines can be redrawn.
func Interactive(f *os.File) bool {
	return term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// sanitised keeps the colours of the console writer and nothing else that a terminal would obey; zerolog quotes control characters in values.
type sanitised struct{ w io.Writer }

func (s sanitised) Write(p []byte) (int, error) {
	if _, err := s.w.Write(stripHidden(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func oneLine(s string) string { return budget.Preview(s, 2_000) }
