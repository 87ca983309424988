package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"muster/cmd/internal/app"
)

const (
	maxPromptBytes = 1 << 20
	maxPlanBytes   = 1 << 20 // what is read of a plan; its own, lower bound is in package agents
)

// readPrompt takes the prompt from the argument, from standard input where that is "-", or from a file.
func readPrompt(ctx context.Context, arg, file string) (string, error) {
	text := []byte(arg)
	var err error
	switch {
	case file != "":
		text, err = readInput(ctx, file, maxPromptBytes)
	case arg == "-":
		text, err = readInput(ctx, "", maxPromptBytes)
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", app.Usage("prompt: %w", err)
	}
	if !utf8.Valid(text) {
		return "", app.Usage("the prompt is not UTF-8 text")
	}
	if strings.TrimSpace(string(text)) == "" {
		return "", app.Usage("the prompt is empty")
	}
	return string(text), nil
}

// readInput reads a file, or standard input where name is empty or "-", until its end or that of ctx: a pipe may have nobody at its other side.
// A read that never returns is left to the end of the process.
func readInput(ctx context.Context, name string, limit int64) ([]byte, error) {
	type read struct {
		b   []byte
		err error
	}
	done := make(chan read, 1)
	go func() {
		b, err := readBounded(name, limit)
		done <- read{b, err}
	}()
	select {
	case r := <-done:
		return r.b, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func readBounded(name string, limit int64) ([]byte, error) {
	f, what := os.Stdin, "standard input"
	if name != "" && name != "-" {
		var err error
		if f, err = os.Open(name); err != nil {
			return nil, err
		}
		defer f.Close()
		what = name
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", what, limit)
	}
	return b, nil
}
