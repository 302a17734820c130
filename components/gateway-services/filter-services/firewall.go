package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	coreruleset "github.com/corazawaf/coraza-coreruleset/v4"
	"github.com/corazawaf/coraza/v3"
	"github.com/corazawaf/coraza/v3/types"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The core rule set as its authors recommend it, refusing requests rather than reporting them. Of a body, no more than this
// many bytes are kept and inspected. Responses are not inspected: the proxy does not send them.
const directives = `
Include @coraza.conf-recommended
Include @crs-setup.conf.example
Include @owasp_crs/*.conf
SecRuleEngine On
SecRequestBodyLimit 131072
SecRequestBodyInMemoryLimit 131072
SecRequestBodyLimitAction ProcessPartial
SecResponseBodyAccess Off
SecAuditEngine Off
`

// firewall inspects headers and bodies of requests that a proxy sends to it (ext_proc).
type firewall struct {
	extprocv3.UnimplementedExternalProcessorServer
	waf      coraza.WAF
	counters *counters
}

func newFirewall(counters *counters) (*firewall, error) {
	config := coraza.NewWAFConfig().WithRootFS(coreruleset.FS).WithDirectives(directives)
	waf, err := coraza.NewWAF(config)
	if err != nil {
		return nil, fmt.Errorf("load the core rule set: %w", err)
	}
	return &firewall{waf: waf, counters: counters}, nil
}

func (f *firewall) server() server {
	server := newGRPCServer()
	extprocv3.RegisterExternalProcessorServer(server, f)
	return server
}

// Process inspects one request. Proxies open a stream for each.
func (f *firewall) Process(stream extprocv3.ExternalProcessor_ProcessServer) error {
	transaction := f.waf.NewTransaction()
	defer func() {
		transaction.ProcessLogging()
		_ = transaction.Close()
	}()
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) || status.Code(err) == codes.Canceled {
			return nil
		}
		if err != nil {
			return err
		}
		response, err := f.inspect(transaction, message)
		if err != nil {
			return err
		}
		if err := stream.Send(response); err != nil {
			return err
		}
	}
}

func (f *firewall) inspect(
	transaction types.Transaction, message *extprocv3.ProcessingRequest,
) (*extprocv3.ProcessingResponse, error) {
	goOn := &extprocv3.CommonResponse{}
	switch part := message.Request.(type) {
	case *extprocv3.ProcessingRequest_RequestHeaders:
		interruption := inspectHeaders(transaction, part.RequestHeaders.GetHeaders().GetHeaders())
		if interruption == nil && !part.RequestHeaders.EndOfStream {
			// The decision is made with the body.
			return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestHeaders{
				RequestHeaders: &extprocv3.HeadersResponse{Response: goOn},
			}}, nil
		}
		return f.decide(transaction, interruption, &extprocv3.ProcessingResponse{
			Response: &extprocv3.ProcessingResponse_RequestHeaders{
				RequestHeaders: &extprocv3.HeadersResponse{Response: goOn},
			},
		})
	case *extprocv3.ProcessingRequest_RequestBody:
		interruption, _, err := transaction.WriteRequestBody(part.RequestBody.Body)
		if err != nil {
			return nil, status.Errorf(codes.Internal, "read a body: %v", err)
		}
		return f.decide(transaction, interruption, &extprocv3.ProcessingResponse{
			Response: &extprocv3.ProcessingResponse_RequestBody{
				RequestBody: &extprocv3.BodyResponse{Response: goOn},
			},
		})
	default:
		return nil, status.Errorf(codes.InvalidArgument, "a request's headers or body are expected, not %T", part)
	}
}

// decide evaluates the rules of the whole request, unless one interrupted it before, and counts it.
func (f *firewall) decide(
	transaction types.Transaction, interruption *types.Interruption, pass *extprocv3.ProcessingResponse,
) (*extprocv3.ProcessingResponse, error) {
	if interruption == nil {
		var err error
		if interruption, err = transaction.ProcessRequestBody(); err != nil {
			return nil, status.Errorf(codes.Internal, "evaluate the rules: %v", err)
		}
	}
	f.counters.count(interruption == nil)
	if interruption == nil {
		return pass, nil
	}
	code := interruption.Status
	if code == 0 {
		code = http.StatusForbidden
	}
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ImmediateResponse{
		ImmediateResponse: &extprocv3.ImmediateResponse{
			Status:  &typev3.HttpStatus{Code: typev3.StatusCode(code)},
			Body:    []byte("refused by the web application firewall\n"),
			Details: fmt.Sprintf("waf_rule_%d", interruption.RuleID),
		},
	}}, nil
}

func inspectHeaders(transaction types.Transaction, headers []*corev3.HeaderValue) *types.Interruption {
	var method, path string
	for _, header := range headers {
		value := header.Value
		if len(header.RawValue) > 0 {
			value = string(header.RawValue)
		}
		switch header.Key {
		case ":method":
			method = value
		case ":path":
			path = value
		case ":authority":
			transaction.SetServerName(value)
			transaction.AddRequestHeader("host", value)
		default:
			if !strings.HasPrefix(header.Key, ":") {
				transaction.AddRequestHeader(header.Key, value)
			}
		}
	}
	// Proxies do not say which version of HTTP it was; rules ask whether it is one at all.
	transaction.ProcessURI(path, method, "HTTP/1.1")
	return transaction.ProcessRequestHeaders()
}
