package main

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net/http"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
)

// The credential that allowed requests show.
const (
	credentialHeader   = "x-api-key"
	credentialVariable = "FILTER_SERVICES_API_KEY"
	refusal            = "no valid " + credentialHeader + "\n"
)

// authorization allows requests that show the credential.
type authorization struct {
	authv3.UnimplementedAuthorizationServer
	credential []byte
	counters   *counters
}

func newAuthorization(credential string, counters *counters) *authorization {
	return &authorization{credential: []byte(credential), counters: counters}
}

func (a *authorization) server(protocol string) (server, error) {
	switch protocol {
	case "grpc":
		server := newGRPCServer()
		authv3.RegisterAuthorizationServer(server, a)
		return server, nil
	case "http":
		return newHTTPServer(a), nil
	default:
		return nil, fmt.Errorf("--protocol=%s: grpc or http is expected", protocol)
	}
}

func (a *authorization) allows(shown string) bool {
	allowed := subtle.ConstantTimeCompare([]byte(shown), a.credential) == 1
	a.counters.count(allowed)
	return allowed
}

// Check answers a proxy that asks by gRPC.
func (a *authorization) Check(_ context.Context, request *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	headers := request.GetAttributes().GetRequest().GetHttp().GetHeaders()
	if a.allows(headers[credentialHeader]) {
		return &authv3.CheckResponse{
			Status:       &status.Status{Code: int32(codes.OK)},
			HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{}},
		}, nil
	}
	return &authv3.CheckResponse{
		Status: &status.Status{Code: int32(codes.PermissionDenied)},
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
			Status: &typev3.HttpStatus{Code: typev3.StatusCode_Forbidden},
			Body:   refusal,
		}},
	}, nil
}

// ServeHTTP answers a proxy that asks by HTTP: it sends the request's own method, path and chosen headers.
func (a *authorization) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	if !a.allows(request.Header.Get(credentialHeader)) {
		http.Error(response, refusal, http.StatusForbidden)
	}
}
