const LOOPBACK = /^(?<scheme>https?:\/\/)(?:localhost|127\.0\.0\.1|\[::1\])(?![^:/])/i

/** Whether both URLs are one address: the usual names of the loopback are one host. */
export function isSameAddress(one: string, other: string): boolean {
  return byName(one) === byName(other)
}

const byName = (url: string) => url.replace(/\/+$/, '').replace(LOOPBACK, '$<scheme>localhost')
