/**
 * The name as the server writes it, from a read of what is to be removed. On a full disk the server refuses reads of a local
 * administrator, whose entry it cannot write, but still removes: then the name that was given stands.
 */
export async function exactName(given: string, read: Promise<{ readonly name: string }>): Promise<string> {
  try {
    return (await read).name
  } catch (error) {
    if (isAuditFull(error)) return given
    throw error
  }
}

export function isAuditFull(error: unknown): boolean {
  return (error as { code?: unknown }).code === 'audit_unavailable'
}
