package main

import (
	"context"
	"os"

	"github.com/urfave/cli/v2"

	"muster/cmd/internal/app"
	"muster/tools/sandbox"
)

func main() {
	sandbox.Main()
	os.Exit(app.Run(context.Background(), newProgram(), os.Args))
}

func newProgram() *cli.App {
	return &cli.App{
		Name:  "orchestrator",
		Usage: "split a large task over many agents, and watch the board",
		UsageText: `orchestrator run --plan examples/audit.yaml --dir .
orchestrator list
orchestrator collect ID`,
		Description: `Without --connect (or NATS_URL) the board is kept in a data folder of the project around --dir,
and whichever command needs it runs its server. Flags may stand before and after the other arguments;
what follows -- is never a flag.

Exit codes: 0 done, 1 failed (also lost, denied), 2 usage, 3 partial, 4 killed, 5 cannot connect,
130 interrupted (143 by SIGTERM, 129 by SIGHUP).`,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "version", DisableDefaultText: true, Usage: "print the version, as the command does"}},
		Commands: []*cli.Command{
			newRun(), newSubmit(), newList(), newShow(), newLogs(), newCollect(), newKill(), newWatch(), newWorkers(),
			newApprovals(), newAnswer(true), newAnswer(false), newStats(), newRequeue(),
			newMemory(), newServe(), newDoctor(), newTools(), newRules(), newCall(), newVersion(),
		},
	}
}
