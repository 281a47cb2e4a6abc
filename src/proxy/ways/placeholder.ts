export function placeholderFor(_type: string, _field: string, _secret?: string): string {
  throw new Error('not built yet')
}
