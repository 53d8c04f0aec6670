package engine

import (
	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/session"
)

// Messages gives the tests what a request would be made of.
func Messages(items []*session.Item, provider string, images bool) []model.Message {
	c := conversation{provider: provider, images: images}
	return c.messages(items)
}
