/** `<host>:<port>` as in a URL, where the address of IPv6 stands in brackets. */
export function hostPort(host: string, port: number | string): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}
