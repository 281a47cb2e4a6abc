import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'

/** A context takes milliseconds to make: one for each set of authorities. A run has as many as uses. */
const contexts = new Map<string | undefined, SecureContext>()

/** What an upstream is trusted by: these authorities, or the system's. */
export function trustOf(ca: string | undefined): SecureContext {
  const context = contexts.get(ca) ?? createSecureContext({ ca: ca ?? systemAuthorities() })
  contexts.set(ca, context)
  return context
}

/** Those of Node, of `NODE_EXTRA_CA_CERTS`, and of the operating system, where a company puts its own. */
function systemAuthorities(): string[] {
  return [...new Set([...getCACertificates('default'), ...getCACertificates('system')])]
}
