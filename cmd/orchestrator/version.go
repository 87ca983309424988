package main

import (
	"runtime"

	"github.com/urfave/cli/v2"

	"muster/cmd/internal/app"
)

// versionRow is what version prints.
type versionRow struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func newVersion() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version", UsageText: "orchestrator version --json",
		Flags: []cli.Flag{app.JSONFlag()},
		Action: func(c *cli.Context) error {
			return runVersion(app.Stdout(c.Bool("json")))
		},
	}
}

func runVersion(out app.Out) error {
	v := versionRow{app.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
	if out.JSON {
		return out.Value(v)
	}
	return out.Text("muster " + v.Version + " (" + v.Go + ", " + v.OS + "/" + v.Arch + ")\n")
}
