import type { HttpUse } from '../../domain/use.ts'
import { ALL, AUTHORIZATION, CHANGING, httpUse, READING, rules } from '../uses.ts'
import { type Config, grantsOf } from './config.ts'

/** What programs ask before anything else: which resources there are, and what they may do ("API Discovery"). */
const DISCOVERY = [
  ...['/api', '/api/v1', '/apis', '/apis/*', '/apis/*/*'].flatMap((path) => [path, `${path}/`]),
  ...['/version', '/openapi/**', '/healthz', '/livez', '/readyz', '/api/v1/namespaces'],
]
const ABOUT_ITSELF = [
  '/apis/authorization.k8s.io/*/selfsubjectaccessreviews',
  '/apis/authorization.k8s.io/*/selfsubjectrulesreviews',
  '/apis/authentication.k8s.io/*/selfsubjectreviews',
]

/** Within a pod there is the token of its service account, and behind a proxy whatever listens there. */
const INSIDE = ['exec', 'attach', 'portforward', 'proxy', 'ephemeralcontainers']
const POD = '/api/v1/namespaces/*/pods/*'
const NEVER = [
  '/api/v1/namespaces/*/secrets/**',
  '/api/v1/namespaces/*/serviceaccounts/*/token/**',
  ...INSIDE.map((part) => `${POD}/${part}/**`),
  '/api/v1/namespaces/*/services/*/proxy/**',
  '/apis/certificates.k8s.io/*/certificatesigningrequests/**',
]
/** What gives rights, or accounts that outlive the credential. */
const RIGHTS = [
  '/api/v1/namespaces/*/serviceaccounts/**',
  '/apis/rbac.authorization.k8s.io/*/namespaces/*/**',
]
/** The namespace itself: `/namespaces/shop/**` matches it, too, and everything in it would be deleted with it. */
const NAMESPACE = ['', '/finalize', '/status'].map((part) => `/api/v1/namespaces/*${part}`)

/** The namespaces of the scopes. Of the roles only `view`, which Kubernetes defines, says that nothing is changed. */
export function usesOf(settings: Config, scopes: readonly string[]): readonly HttpUse[] {
  const grants = scopes.flatMap((scope) => grantsOf(settings, scope))
  const namespaces = [...new Set(grants.map(({ namespace }) => namespace))]
  if (namespaces.length === 0) return []
  const { server, local, ca } = settings
  return httpUse(
    'api',
    { base: server, local, ca },
    {
      places: [AUTHORIZATION].map((place) => ({ ...place, field: 'token' })),
      allow: [
        ...namespaces.flatMap((name) => {
          const isChanged = grants.some(({ namespace, role }) => namespace === name && role !== 'view')
          const paths = [`/api/v1/namespaces/${name}/**`, `/apis/*/*/namespaces/${name}/**`]
          return rules(isChanged ? ALL : READING, paths)
        }),
        ...rules(READING, DISCOVERY),
        ...rules(['POST'], ABOUT_ITSELF),
      ],
      deny: [...rules(['*'], NEVER), ...rules(CHANGING, [...RIGHTS, ...NAMESPACE])],
    },
  )
}
