"""How the JVM of Spark is started in tests."""

from __future__ import annotations

# Most code of a short-lived JVM runs too seldom to be worth the second, better compiler: without
# it, Spark takes a quarter less of the processors that the other tests run on. Its memory is so
# small that one thread collects what is not used any more with less work than several. It loads
# thousands of classes and starts hundreds of tiny programs: that goes without proofs of the former,
# and without a helper for each of the latter.
OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    " -Djdk.lang.Process.launchMechanism=VFORK"
)

# The usual writer of checkpoints runs `readlink` some 200 times for a stream of four files.
CHECKPOINTS = (
    "spark.sql.streaming.checkpointFileManagerClass=org.apache.spark.sql.execution.streaming."
    "checkpointing.FileSystemBasedCheckpointFileManager"
)

SUBMITTED = f"--driver-java-options '{OPTIONS}' --conf {CHECKPOINTS} pyspark-shell"
"""What PYSPARK_SUBMIT_ARGS should be."""
