import { Type } from 'typebox'
import * as health from '../health.ts'
import * as registry from '../registry.ts'
import { name } from '../shared.ts'
import { BackendName } from '../v1.ts'
import * as wellKnown from '../well-known.ts'
import { admin, open, type Route } from './route.ts'

const CACHED = 'public, max-age=300'
const DOCUMENTS = 'documents a minute per address'

const operation = (limits?: string) => ({ ...open(limits), tags: ['operations'] }) as const
const discovery = { ...open(), tags: ['discovery'] } as const

/** Operations, discovery and what servers read of a backend: the routes outside the two groups. */
export const ROOT = {
  'GET /': {
    ...operation(),
    id: 'showHome',
    summary: 'Leads to the documentation',
    replies: { 302: Type.Null({ description: 'The documentation.' }) },
  },
  'GET /health': {
    ...operation(),
    id: 'getHealth',
    summary: 'Whether the process is alive',
    replies: { 200: health.Health },
  },
  'GET /readyz': {
    access: 'public',
    verbose: 'admin:metrics:read',
    id: 'getReadiness',
    tags: ['operations'],
    summary: 'Whether the server can issue: whether the store is writable',
    description:
      'With `?verbose`, which needs `admin:metrics:read` or the local host, it names the backends that are down, and those whose upstream has not confirmed yet that a credential is gone. They do not make the server unready.',
    query: health.ReadinessQuery,
    replies: { 200: health.Readiness },
  },
  'GET /metrics': {
    ...admin('operations')('admin:metrics:read'),
    id: 'getMetrics',
    summary: 'Prometheus metrics',
    replies: { 200: Type.String() },
    produces: ['text/plain'],
  },
  'GET /openapi.json': {
    ...operation(DOCUMENTS),
    id: 'getOpenApi',
    summary: 'This interface as OpenAPI 3.1',
    replies: { 200: Type.Unknown({ description: 'The document.' }) },
  },
  'GET /docs': {
    ...operation(DOCUMENTS),
    id: 'showDocs',
    summary: 'This interface as a page',
    replies: { 200: Type.String() },
    produces: ['text/html'],
  },
  'GET /docs/scalar.js': {
    ...operation(DOCUMENTS),
    id: 'getDocsScript',
    summary: 'The script of that page',
    replies: { 200: Type.String() },
    produces: ['text/javascript'],
    cacheControl: CACHED,
  },
  'GET /.well-known/openid-configuration': {
    ...discovery,
    id: 'getOpenIdConfiguration',
    summary: 'OpenID Connect discovery',
    replies: { 200: wellKnown.DiscoveryReply },
    cacheControl: CACHED,
  },
  'GET /.well-known/oauth-authorization-server': {
    ...discovery,
    id: 'getAuthorizationServer',
    summary: 'OAuth 2.0 authorization server metadata',
    replies: { 200: wellKnown.DiscoveryReply },
    cacheControl: CACHED,
  },
  'GET /.well-known/jwks.json': {
    ...discovery,
    id: 'getKeys',
    summary: 'Public keys of the issuer',
    replies: { 200: wellKnown.JwksReply },
    cacheControl: CACHED,
  },
  'GET /backends/:backend/.well-known/openid-configuration': {
    ...discovery,
    id: 'getBackendOpenIdConfiguration',
    summary: 'Discovery of a backend that is an issuer of its own',
    params: BackendName,
    replies: { 200: wellKnown.DiscoveryReply },
    cacheControl: CACHED,
    errors: ['not_found'],
  },
  'GET /backends/:backend/.well-known/jwks.json': {
    ...discovery,
    id: 'getBackendKeys',
    summary: 'Public keys of a backend that is an issuer of its own',
    params: BackendName,
    replies: { 200: wellKnown.JwksReply },
    cacheControl: CACHED,
    errors: ['not_found'],
  },
  'GET /backends/:backend/revoked': {
    ...discovery,
    id: 'getRevocationList',
    summary: 'Revoked credentials of a backend whose credentials servers verify by themselves',
    description:
      'A key revocation list of OpenSSH for kind `ssh`, a certificate revocation list (DER) for kind `x509`.',
    params: BackendName,
    replies: { 200: Type.Unknown({ description: 'The list.' }) },
    produces: ['application/octet-stream', 'application/pkix-crl'],
    cacheControl: 'public, max-age=1',
    errors: ['not_found'],
  },
  'GET /backends/:backend/token': {
    ...open('failures a minute per credential and address; tokens a minute per agent', 'token.issued'),
    id: 'createRegistryToken',
    tags: ['credentials'],
    summary: 'Get a token for a container registry',
    description:
      'The distribution token specification. `Authorization: Basic` with the `username` and the `password` of a credential of kind `registry`.',
    params: Type.Object({ backend: name('Name of the backend.', 'images') }),
    query: registry.RegistryTokenQuery,
    replies: { 200: registry.RegistryTokenReply },
    errors: [
      'unauthorized',
      'not_found',
      'conflict',
      'rate_limited',
      'backend_unavailable',
      'audit_unavailable',
    ],
  },
} as const satisfies Record<string, Route>
