package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	sdk "github.com/openai/openai-go/v3"

	"github.com/boughdev/bough/host/model"
)

// classify makes a model.Error of what the SDK returned; when ctx has ended it
// is that of ctx.
func (p *Provider) classify(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	out := &model.Error{Class: model.ClassNetwork, Provider: provider, Err: err}
	var api *sdk.Error
	var syntax *json.SyntaxError
	var network net.Error
	switch {
	case errors.As(err, &api):
		fromStatus(out, api)
	case errors.As(err, &syntax), strings.Contains(err.Error(), "unmarshal"), strings.Contains(err.Error(), "invalid character"),
		strings.Contains(err.Error(), "unexpected end of JSON"):
		out.Class = model.ClassMalformed
		out.Message = "the server sent something that is no answer: " + err.Error()
	case strings.Contains(err.Error(), "connection refused"):
		out.Message = fmt.Sprintf("nothing answers at %s: is the server running? BOUGH_OPENAI_COMPATIBLE_BASE_URL names another", p.o.BaseURL)
	case errors.As(err, &network) && network.Timeout():
		out.Message = fmt.Sprintf("%s did not answer in time", p.o.BaseURL)
	default:
		out.Message = fmt.Sprintf("the connection to %s failed: %v", p.o.BaseURL, err)
		fromStreamedError(out, err.Error())
	}
	return out
}

// fromStreamedError recognises an error that came as an event of the stream.
func fromStreamedError(out *model.Error, text string) {
	lower := strings.ToLower(text)
	switch {
	case tooLong(lower):
		out.Class, out.Message = model.ClassContextTooLong, text
	case strings.Contains(lower, "overloaded"):
		out.Class, out.Message = model.ClassOverloaded, text
	case strings.Contains(lower, "error while streaming"):
		out.Class, out.Message = model.ClassServer, text
	}
}

func fromStatus(out *model.Error, api *sdk.Error) {
	out.Status, out.Message = api.StatusCode, api.Message
	if out.Message == "" {
		out.Message = strings.TrimSpace(api.RawJSON())
	}
	if out.Message == "" {
		out.Message = http.StatusText(api.StatusCode)
	}
	if api.Response != nil {
		out.RequestID = api.Response.Header.Get("x-request-id")
		out.RetryAfter = retryAfter(api.Response.Header)
	}
	lower := strings.ToLower(out.Message + " " + api.Code)
	switch s := api.StatusCode; {
	case tooLong(lower), s == http.StatusRequestEntityTooLarge:
		out.Class = model.ClassContextTooLong
	case s == http.StatusUnauthorized, s == http.StatusForbidden:
		out.Class = model.ClassAuth
		out.Message += "; set BOUGH_OPENAI_COMPATIBLE_API_KEY"
	case s == http.StatusPaymentRequired, strings.Contains(lower, "insufficient_quota"):
		out.Class = model.ClassBilling
	case s == http.StatusTooManyRequests:
		out.Class = model.ClassRateLimited
	case s == http.StatusNotFound:
		out.Class = model.ClassUnknownModel
	case s == http.StatusServiceUnavailable, s == 529:
		out.Class = model.ClassOverloaded
	case s >= 500:
		out.Class = model.ClassServer
	default:
		out.Class = model.ClassBadRequest
	}
}

// tooLong knows the words of several servers for a context that is too long.
func tooLong(lower string) bool {
	for _, words := range []string{
		"context_length_exceeded", "context length", "context window", "maximum context",
		"exceeds the available context", "too many tokens", "prompt is too long",
	} {
		if strings.Contains(lower, words) {
			return true
		}
	}
	return false
}

// retryAfter is the server's hint: milliseconds, seconds or a date.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("retry-after-ms"), 64); err == nil && ms > 0 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil && s > 0 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
