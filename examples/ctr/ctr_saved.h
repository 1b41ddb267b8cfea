/* Names of the checkpoints of a job: whole ones, and increments after them. */
#ifndef CTR_SAVED_H
#define CTR_SAVED_H

#define CTR_SAVED_WHOLE "ctr"
#define CTR_SAVED_PART "ctr-part"

#endif
