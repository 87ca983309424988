package tools

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"muster/board"
	"muster/budget"
)

// todos is the list of one agent. Writing replaces it whole.
type todos struct {
	mu    sync.Mutex
	items []todoItem
}

type todoItem struct {
	Content string `json:"content" jsonschema:"one short line"`
	Status  string `json:"status,omitempty" default:"pending" enum:"pending,in_progress,completed"`
}

type todoArgs struct {
	Items []todoItem `json:"items" max:"todo_items" jsonschema:"all items in order; empty clears"`
}

func todoWrite() Tool {
	return define("todo_write", State,
		"Writes your todo list: replaces the whole list, so send every item. Returns the counts.",
		runTodoWrite)
}

func todoRead() Tool {
	return define("todo_read", Read, "Shows your todo list with the status of each item.", runTodoRead)
}

func runTodoWrite(_ context.Context, c *Call, a todoArgs) (Output, error) {
	var done, doing int
	for i, item := range a.Items {
		if n := budget.Chars(item.Content); n > c.Caps.PreviewChars {
			return Output{}, fail(Input, "items[%d].content has %d characters, an item takes at most %d; nothing was written", i, n, c.Caps.PreviewChars)
		}
		switch item.Status {
		case "completed":
			done++
		case "in_progress":
			doing++
		}
	}
	if n := budget.Chars(todoText(a.Items)); n > c.Caps.OutputChars {
		return Output{}, fail(Input, "the list would take %d characters to show, at most %d fit; nothing was written, shorten the items", n, c.Caps.OutputChars)
	}
	c.set.todo.mu.Lock()
	c.set.todo.items = a.Items
	c.set.todo.mu.Unlock()
	total := len(a.Items)
	if l := c.set.cfg.Lease; l != nil {
		l.Update(func(e *board.Entry) { e.TodoDone, e.TodoTotal = done, total })
	}
	if total == 0 {
		return Output{Text: "the todo list is now empty"}, nil
	}
	return Output{Text: fmt.Sprintf("the todo list has %s: %d completed, %d in progress, %d pending", plural(int64(total), "item"), done, doing, total-done-doing)}, nil
}

func runTodoRead(_ context.Context, c *Call, _ struct{}) (Output, error) {
	c.set.todo.mu.Lock()
	defer c.set.todo.mu.Unlock()
	if len(c.set.todo.items) == 0 {
		return Output{Text: "the todo list is empty"}, nil
	}
	return Output{Text: todoText(c.set.todo.items)}, nil
}

// todoText shows an item a line: what an item holds cannot look like another item.
func todoText(items []todoItem) string {
	var b strings.Builder
	marks := map[string]string{"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}
	for i, item := range items {
		line, _, _ := visible(strings.ReplaceAll(item.Content, "\t", " "))
		fmt.Fprintf(&b, "%d. %s %s\n", i+1, marks[item.Status], line)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
