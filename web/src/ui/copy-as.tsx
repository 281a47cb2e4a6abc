import { useState } from 'react'
import { Button } from './button.tsx'
import { Snippet } from './copy.tsx'
import { Dialog } from './dialog.tsx'

interface Props {
  /** Lines of the command that do or show the same as this page. */
  readonly command: string
  /** The request behind this page: "GET /v1/admin/agents". */
  readonly request: string
  /** JSON that the request sends. */
  readonly body?: unknown
}

/** What this page shows, as a command and as a request: whatever the console can do, everybody can script. */
export function CopyAs({ command, request, body }: Props) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button look="quiet" onClick={() => setOpen(true)}>
        As a command
      </Button>
      {isOpen && (
        <Dialog title="The same from a terminal" onClose={() => setOpen(false)} isWide>
          <div className="grid gap-3">
            <h3 className="text-sm">With the command</h3>
            <Snippet text={command} what="the command" />
            <h3 className="text-sm">With curl</h3>
            <Snippet text={curlOf(request, body)} what="the request" />
            <p className="text-xs text-muted">
              $TOKEN is the token of an agent with the scopes that you use here. On the server&rsquo;s machine
              the command needs none.
            </p>
          </div>
        </Dialog>
      )}
    </>
  )
}

/** For a POSIX shell. */
function curlOf(request: string, body: unknown): string {
  const [method = 'GET', path = ''] = request.split(' ')
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
  return [
    `curl -sS ${method === 'GET' ? '' : `-X ${method} `}-H "Authorization: Bearer $TOKEN"`,
    ...(body === undefined
      ? []
      : [`  -H 'Content-Type: application/json' -d ${quoted(JSON.stringify(body))}`]),
    `  ${quoted(location.origin + path)}`,
  ].join(' \\\n')
}
