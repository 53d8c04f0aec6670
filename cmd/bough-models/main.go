// Command bough-models is the model plugin: the providers on their SDKs, which
// are heavy, in a process of their own. bough starts it when a provider is
// needed.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/boughdev/bough/plugins/models/openai"
	"github.com/boughdev/bough/plugins/sdk"
)

// version is set by the linker.
var version = "dev"

func main() {
	o := openai.Options{BaseURL: os.Getenv("BOUGH_OPENAI_COMPATIBLE_BASE_URL"), Key: os.Getenv("BOUGH_OPENAI_COMPATIBLE_API_KEY")}
	if o.Key == "" && strings.HasPrefix(o.BaseURL, "https://api.openai.com/") {
		o.Key = os.Getenv("OPENAI_API_KEY")
	}
	err := sdk.Serve(context.Background(), sdk.Plugin{Name: "models", Version: version, Models: openai.New(o)})
	if err != nil {
		fmt.Fprintln(os.Stderr, "bough-models:", err)
		os.Exit(1)
	}
}
