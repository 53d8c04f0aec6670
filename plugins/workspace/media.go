package workspace

import (
	"bytes"
	"fmt"
	"image"
	_ "image/gif"  // for its size
	_ "image/jpeg" // for its size
	_ "image/png"  // for its size
	"strings"

	"github.com/boughdev/bough/host/tool/outputs/lines"
)

// notText says what a file is that cannot be shown as text; empty: it can. An
// image is no mistake, other files that are not text are refused.
func notText(name string, head []byte, size int64) (what string, refused bool) {
	if kind := pictureKind(head); kind != "" {
		extent := ""
		if config, _, err := image.DecodeConfig(bytes.NewReader(head)); err == nil {
			extent = fmt.Sprintf(" of %d × %d pixels", config.Width, config.Height)
		}
		return fmt.Sprintf("%s is a %s image%s, %s; it cannot be shown as text.\n", name, kind, extent, count(size, "byte", "bytes")), false
	}
	for mark, kind := range map[string]string{"\xff\xfe": "UTF-16LE", "\xfe\xff": "UTF-16BE"} {
		if bytes.HasPrefix(head, []byte(mark)) && lines.Binary(head) {
			return fmt.Sprintf("%s is text in %s, which cannot be shown: convert it with the shell (iconv -f %s -t UTF-8).\n", name, kind, kind), true
		}
	}
	if lines.Binary(head) {
		return fmt.Sprintf("%s is binary, %s; it cannot be shown as text. The shell has tools for it (file, xxd, strings, unzip -l).\n", name, count(size, "byte", "bytes")), true
	}
	return "", false
}

// pictureKind tells an image by how it begins.
func pictureKind(head []byte) string {
	text := string(head[:min(len(head), 16)])
	switch {
	case strings.HasPrefix(text, "\x89PNG\r\n\x1a\n"):
		return "PNG"
	case strings.HasPrefix(text, "\xff\xd8\xff"):
		return "JPEG"
	case strings.HasPrefix(text, "GIF87a"), strings.HasPrefix(text, "GIF89a"):
		return "GIF"
	case len(text) >= 12 && text[:4] == "RIFF" && text[8:12] == "WEBP":
		return "WebP"
	}
	return ""
}
