import { useState } from 'react'
import { isNotFound } from '../../api/failure.ts'
import { refresh } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { Button } from '../../ui/button.tsx'
import { Actions, Dialog } from '../../ui/dialog.tsx'
import { ErrorNote } from '../../ui/notes.tsx'

/** Requests at a time. */
const AT_ONCE = 6

interface SelectedProps {
  readonly ids: readonly string[]
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Ends a selection, and counts what the server has answered. */
export function EndSelected({ ids: selected, onClose, onDone }: SelectedProps) {
  // When it is done nothing is selected any more, and this still says what has ended.
  const [ids] = useState(selected)
  const [ended, setEnded] = useState(0)
  const [failures, setFailures] = useState<readonly unknown[]>([])
  const [isSent, setSent] = useState(false)
  const isOver = isSent && ended + failures.length === ids.length
  const run = async () => {
    setSent(true)
    const left = [...ids]
    const worker = async () => {
      for (let id = left.shift(); id !== undefined; id = left.shift()) {
        try {
          await admin.tokens.revoke(id)
          setEnded((count) => count + 1)
        } catch (error) {
          // It has ended and was tidied away.
          if (isNotFound(error)) setEnded((count) => count + 1)
          else setFailures((before) => [...before, error])
        }
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
    onDone()
    await refresh('GET /v1/admin/tokens', 'GET /v1/admin/tokens/:id')
  }
  return (
    <Dialog
      title={`End ${ids.length} credentials?`}
      description="Their holders lose them at once. It cannot be undone."
      onClose={onClose}
    >
      {isSent && (
        <div className="grid gap-2">
          <progress className="w-full" max={ids.length} value={ended + failures.length} aria-label="Ended" />
          <p role="status">
            {ended} of {ids.length} ended{failures.length > 0 && `, ${failures.length} refused`}
          </p>
        </div>
      )}
      {failures[0] !== undefined && <ErrorNote error={failures[0]} />}
      <Actions>
        <Button onClick={onClose}>{isOver ? 'Close' : 'Cancel'}</Button>
        {!isSent && (
          <Button look="danger" onClick={() => void run()}>
            End {ids.length} credentials
          </Button>
        )}
      </Actions>
    </Dialog>
  )
}
