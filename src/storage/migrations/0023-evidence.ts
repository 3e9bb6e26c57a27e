/** Which artifacts are evidence of what an attempt's browser did; the others are files of workflows. */

export const script = () => `ALTER TABLE artifacts ADD COLUMN kind TEXT NOT NULL DEFAULT 'workflow'`
