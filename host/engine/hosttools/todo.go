package hosttools

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/tool"
)

// Status is how far a thing to do is.
type Status string

// The statuses of a thing to do.
const (
	Pending    Status = "pending"
	InProgress Status = "in_progress"
	Completed  Status = "completed"
	Cancelled  Status = "cancelled"
)

// Todo is one thing to do.
type Todo struct {
	Content string `json:"content"`
	Status  Status `json:"status"`
}

type todoList struct {
	Todos []Todo `json:"todos"`
}

// writeTodos answers with the list as it is now. The list is kept nowhere
// else: it is the input of the last such call on the path, so it goes back
// and forth with the head.
func writeTodos(call tool.Call) (tool.Result, error) {
	var list todoList
	if err := json.Unmarshal(call.Input, &list); err != nil {
		return tool.Result{Text: "the list cannot be read: " + err.Error(), Error: true}, nil
	}
	open, working := 0, 0
	for i, t := range list.Todos {
		if strings.TrimSpace(t.Content) == "" {
			return tool.Result{Text: fmt.Sprintf("todos[%d]: content is empty", i), Error: true}, nil
		}
		switch t.Status {
		case InProgress:
			working++
			open++
		case Pending:
			open++
		case Completed, Cancelled:
		default:
			return tool.Result{Text: fmt.Sprintf("todos[%d]: status %q is none of pending, in_progress, completed, cancelled", i, t.Status), Error: true}, nil
		}
	}
	text := fmt.Sprintf("The list has %d entries, %d of them open.", len(list.Todos), open)
	if working > 1 {
		text += fmt.Sprintf(" %d are in progress: work on one at a time.", working)
	}
	details, err := json.Marshal(list)
	if err != nil {
		return tool.Result{}, fmt.Errorf("encode the list: %w", err)
	}
	return tool.Result{Text: text, Details: details}, nil
}

// Todos is the list as of the end of a path: what the last successful call of
// todo_write among its items wrote.
func Todos(items []*session.Item) []Todo {
	done := map[string]bool{}
	for i := len(items) - 1; i >= 0; i-- {
		if r := items[i].Payload.GetToolResult(); r != nil && r.GetName() == TodoWrite {
			done[r.GetCallId()] = !r.GetError()
		}
		c := items[i].Payload.GetToolCall()
		if c == nil || c.GetName() != TodoWrite || !done[c.GetId()] {
			continue
		}
		var list todoList
		if json.Unmarshal(c.GetInput(), &list) == nil {
			return list.Todos
		}
	}
	return nil
}
