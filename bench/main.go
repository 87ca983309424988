package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"muster/tools/sandbox"
)

func main() {
	sandbox.Main() // commands are confined by this same program, run again
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := program().RunContext(ctx, os.Args)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func program() *cli.App {
	return &cli.App{
		Name:            "bench",
		Usage:           "measure Muster beside the tools that people use now",
		UsageText:       "go run . [--only NAME] [--rounds N] [--json]",
		Description:     "Rows run both sides in turn and print the ratio, ours over theirs: less is better. See doc.go for how.",
		HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "only", Usage: "rows whose name begins with `NAME`; may be repeated"},
			&cli.IntFlag{Name: "rounds", Value: 12, Usage: "pairs of a row, after one that does not count"},
			&cli.IntFlag{Name: "files", Value: 100_000, Usage: "files of the made tree"},
			&cli.Int64Flag{Name: "flood", Value: 10 << 30, Usage: "bytes of the flood"},
			&cli.BoolFlag{Name: "json", Usage: "print the rows as JSON"},
		},
		Commands: []*cli.Command{{
			Name: callCommand, Hidden: true, HideHelpCommand: true,
			Action: func(c *cli.Context) error { return callOnce(c.Context, c.Args().Slice()) },
		}},
		Action: func(c *cli.Context) error {
			o := options{only: c.StringSlice("only"), rounds: c.Int("rounds"), files: c.Int("files"), flood: c.Int64("flood")}
			if o.rounds < 1 || o.files < 100 || o.flood < 1<<20 || c.Args().Present() {
				return errors.New("rounds from 1, files from 100, flood from 1048576, and no other arguments; --help tells more")
			}
			return run(c.Context, o, c.Bool("json"), os.Stdout, os.Stderr)
		},
	}
}

// options is what to measure, and how much.
type options struct {
	only   []string
	rounds int
	files  int
	flood  int64
}

func (o options) wants(name string) bool {
	for _, prefix := range o.only {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return len(o.only) == 0
}

// report is everything that one run found out.
type report struct {
	Machine machine  `json:"machine"`
	Rows    []result `json:"rows"`
}

func run(ctx context.Context, o options, asJSON bool, out, progress io.Writer) error {
	lab, err := newLab(ctx, o, progress)
	if err != nil {
		return err
	}
	defer lab.close()
	r := report{Machine: machineNow()}
	for _, row := range rows() {
		if !o.wants(row.name) {
			continue
		}
		fmt.Fprintf(progress, "%s …\n", row.name)
		got, err := lab.measure(ctx, row)
		if ctx.Err() != nil {
			return fmt.Errorf("stopped; %d rows were measured", len(r.Rows))
		}
		if err != nil {
			got = result{Name: row.name, Note: err.Error()}
		}
		r.Rows = append(r.Rows, got)
	}
	if len(r.Rows) == 0 {
		return fmt.Errorf("no row begins with %s", strings.Join(o.only, " or "))
	}
	r.Machine.LoadAfter = load()
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	return r.table(out)
}

func (r report) table(out io.Writer) error {
	fmt.Fprintf(out, "%s, %d processors, load %.1f before and %.1f after\n\n", r.Machine.System, r.Machine.Processors, r.Machine.LoadBefore, r.Machine.LoadAfter)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ROW\tAGAINST\tRATIO min/median/max\tTARGET\tOURS\tTHEIRS\tCPU\tMEMORY ours/theirs\tNOTE")
	for _, row := range r.Rows {
		if row.Rounds == 0 {
			fmt.Fprintf(w, "%s\t%s\t–\t\t\t\t\t\t%s\n", row.Name, row.Against, row.Note)
			continue
		}
		target := "–"
		if row.Target > 0 {
			target = fmt.Sprintf("≤ %.2g", row.Target)
		}
		fmt.Fprintf(w, "%s\t%s\t%.2f / %.2f / %.2f\t%s\t%s\t%s\t%.2f\t%s / %s\t%s\n", row.Name, row.Against,
			row.Ratio.Min, row.Ratio.Median, row.Ratio.Max, target, millis(row.OursMillis), millis(row.TheirsMillis), row.CPURatio,
			mebibytes(row.OursMemory), mebibytes(row.TheirsMemory), row.Note)
	}
	return w.Flush()
}

func millis(ms float64) string {
	if ms < 10 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}

func mebibytes(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }
