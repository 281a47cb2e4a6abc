/** Whether the host name of a URL is one of this machine: `localhost`, `127.0.0.0/8`, `[::1]`. */
export function isLoopbackHost(hostname: string): boolean {
  return /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/i.test(hostname)
}

const LOOPBACK_NAMES = ['127.0.0.1', 'localhost', '[::1]']

/** This URL under each usual name of the loopback, first as it is; alone if its host is another. */
export function loopbackForms(url: string): string[] {
  const [, scheme, host = '', rest] = /^(https?:\/\/)([^/:[]+|\[[^\]]*\])(.*)$/i.exec(url) ?? []
  if (!LOOPBACK_NAMES.includes(host)) return [url]
  return [...new Set([url, ...LOOPBACK_NAMES.map((name) => `${scheme}${name}${rest}`)])]
}

/** For the address of a socket: `127.0.0.0/8`, also mapped into IPv6, and `::1`. The kernel writes the text in one fixed form. */
export function isLoopbackAddress(address: string | undefined): boolean {
  return address !== undefined && /^(?:(?:::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::1)$/i.test(address)
}
