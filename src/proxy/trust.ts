import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'

/** What to trust: these authorities, or the system's. */
export type Trust = (ca: string | undefined) => SecureContext

/** A context takes milliseconds to make: one for each set of authorities. A run has as many as uses. */
export function createTrust(): Trust {
  const contexts = new Map<string | undefined, SecureContext>()
  return (ca) => {
    const context = contexts.get(ca) ?? createSecureContext({ ca: ca ?? systemAuthorities() })
    contexts.set(ca, context)
    return context
  }
}

/** Those of Node, of `NODE_EXTRA_CA_CERTS`, and of the operating system, where a company puts its own. */
function systemAuthorities(): string[] {
  return [...new Set([...getCACertificates('default'), ...getCACertificates('system')])]
}
