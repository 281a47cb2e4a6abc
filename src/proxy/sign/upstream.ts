/**
 * The authority that a request goes to which came in by a base URL: that of the origin, and where this begins with `*.`, the one
 * of service and region. undefined: there is none.
 */
export function upstreamAuthority(_origin: string, _service: string, _region: string): string | undefined {
  throw new Error('not built yet')
}
