package engine

import (
	"context"
	_ "embed" // the system prompt
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
	"github.com/boughdev/bough/host/tool"
)

//go:embed prompt.md
var promptText string

// systemPrompt tells the model who it is and where. What changes from session
// to session stands last, so that providers can keep the beginning.
func systemPrompt(folder string, now time.Time, more string) string {
	text := strings.NewReplacer(
		"{{folder}}", folder,
		"{{system}}", runtime.GOOS+"/"+runtime.GOARCH,
		"{{date}}", now.Format("Monday, 2 January 2006"),
	).Replace(promptText)
	if more != "" {
		text += "\n" + more
	}
	return text
}

// providerOf is the part of a model's name that says whose it is.
func providerOf(name string) string {
	if i := strings.IndexAny(name, "/:"); i >= 0 {
		return name[:i]
	}
	return name
}

// request is the whole conversation, as the model is to get it.
func (l *Live) request(ctx context.Context, p model.Provider) *model.Request {
	rec := l.sess.Record().Proto()
	name := rec.GetModel()
	c := conversation{provider: providerOf(name), images: true}
	if l.anyImage {
		c.images = takesImages(ctx, p, name)
	}
	return &model.Request{
		Model:    name,
		System:   l.system,
		Messages: c.messages(l.items),
		Tools:    l.e.Tools.Specs(l.e.Policy.Offers),
		Session:  l.id,
		Settings: rec.GetSettings(),
	}
}

// takesImages asks the provider; a model that it does not describe is taken at
// its word when it refuses.
func takesImages(ctx context.Context, p model.Provider, name string) bool {
	infos, err := p.Models(ctx)
	if err != nil {
		return true
	}
	for _, info := range infos {
		if info.Name == name {
			return info.Images
		}
	}
	return true
}

// load reads the items that requests are made of. It does nothing when they
// are there already.
func (l *Live) load(ctx context.Context) error {
	if l.loaded {
		return nil
	}
	path, err := l.sess.Path(ctx)
	if err != nil {
		return err
	}
	from, err := firstNeeded(ctx, path)
	if err != nil {
		return err
	}
	l.items, l.anyImage, l.callIDs = make([]*session.Item, 0, path.Len()-from), false, map[string]bool{}
	damaged := 0
	for it, err := range path.Items(ctx, from, path.Len()) {
		var broken *session.DamagedError
		switch {
		case errors.As(err, &broken):
			damaged++
			l.e.Logger.ErrorContext(ctx, "an item cannot be read", "session", l.id, "item", broken.Ref.String(), "error", broken.Err)
		case err != nil:
			return err
		default:
			l.remember(it)
		}
	}
	if damaged > 0 {
		l.notice("error", "session", fmt.Sprintf(
			"%d items of this session cannot be read and are left out; `bough sessions verify %s` names them", damaged, l.id))
	}
	l.loaded = true
	return nil
}

// remember adds an item to those that requests are made of.
func (l *Live) remember(it *session.Item) {
	l.items = append(l.items, it)
	switch it.Kind() {
	case session.KindToolCall:
		l.callIDs[it.Payload.GetToolCall().GetId()] = true
	case session.KindPrompt:
		l.anyImage = l.anyImage || len(it.Payload.GetPrompt().GetImages()) > 0
	case session.KindToolResult:
		l.anyImage = l.anyImage || len(it.Payload.GetToolResult().GetImages()) > 0
	}
}

// firstNeeded is the index of the first item that the last summary on the
// path does not stand for.
func firstNeeded(ctx context.Context, path *session.Path) (int, error) {
	for i := path.Len() - 1; i >= 0; i-- {
		e, err := path.Entry(ctx, i)
		if err != nil {
			return 0, err
		}
		if e.Kind != session.KindSummary {
			continue
		}
		to := e.Parent
		for it, err := range path.Items(ctx, i, i+1) {
			if err != nil {
				return 0, err
			}
			if r := it.Payload.GetSummary().GetReplacesTo(); r.GetNumber() != 0 {
				to = session.Ref{Segment: r.GetSegment(), Number: r.GetNumber()}
			}
		}
		for j := i - 1; j >= 0; j-- {
			ref, err := path.Ref(ctx, j)
			if err != nil {
				return 0, err
			}
			if ref == to {
				return j + 1, nil
			}
		}
		return i, nil
	}
	return 0, nil
}

// seenFiles is what the model has read and written on the path, each file
// once, newest last.
func seenFiles(items []*session.Item) []tool.FileState {
	last := map[string]int{}
	var all []*sessionpb.FileState
	for _, it := range items {
		for _, f := range it.Payload.GetToolResult().GetFiles() {
			last[f.GetPath()] = len(all)
			all = append(all, f)
		}
	}
	var seen []tool.FileState
	for i, f := range all {
		if last[f.GetPath()] == i {
			seen = append(seen, tool.FileState{Path: f.GetPath(), SHA256: f.GetSha256(), Written: f.GetWritten(), Partial: f.GetPartial()})
		}
	}
	return seen
}
