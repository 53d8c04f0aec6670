package conformance_test

import (
	"testing"

	"github.com/boughdev/bough/host/store/memstore"
	"github.com/boughdev/bough/plugins/conformance"
)

func TestTheModelConforms(t *testing.T) {
	conformance.RunStorage(t, func(*testing.T) conformance.Backend {
		return conformance.Backend{Store: memstore.New()}
	})
}
