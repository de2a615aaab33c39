use aws_types::region::Region;

use super::*;

fn config(region: &'static str, fips: bool, dual_stack: bool) -> SdkConfig {
    SdkConfig::builder()
        .region(Region::new(region))
        .use_fips(fips)
        .use_dual_stack(dual_stack)
        .build()
}

/// Source: AWS General Reference, "AWS CloudFormation endpoints and quotas".
#[test]
fn calls_go_to_the_regions_own_endpoint() {
    for (region, fips, dual_stack, url) in [
        ("eu-central-1", false, false, "https://cloudformation.eu-central-1.amazonaws.com"),
        ("us-east-1", true, false, "https://cloudformation-fips.us-east-1.amazonaws.com"),
        ("eu-west-1", false, true, "https://cloudformation.eu-west-1.api.aws"),
        ("cn-north-1", false, false, "https://cloudformation.cn-north-1.amazonaws.com.cn"),
        (
            "cn-north-1",
            false,
            true,
            "https://cloudformation.cn-north-1.api.amazonwebservices.com.cn",
        ),
    ] {
        assert_eq!(endpoint(&config(region, fips, dual_stack), region), url);
    }
    let own = config("eu-central-1", false, false).into_builder();
    let own = own.endpoint_url("http://127.0.0.1:4566/").build();
    assert_eq!(endpoint(&own, "eu-central-1"), "http://127.0.0.1:4566");
}

fn answered(status: u16, body: &str) -> HttpResponse {
    HttpResponse::new(status.try_into().unwrap(), SdkBody::from(body))
}

/// An answer as CloudFormation gives it, with more in it than is asked for.
#[test]
fn an_answer_is_read() {
    let body = r#"<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/">
      <DescribeStacksResult>
        <Stacks>
          <member>
            <Outputs>
              <member>
                <Description>Where &amp; how</Description>
                <OutputKey>WebhookUrl</OutputKey>
                <OutputValue>https://x.example.org/?a=1&amp;b=2</OutputValue>
                <ExportName>x</ExportName>
              </member>
              <member><OutputKey>Empty</OutputKey><OutputValue/></member>
            </Outputs>
            <Tags/>
            <StackName>gleaner</StackName>
            <StackStatus>UPDATE_COMPLETE</StackStatus>
            <Parameters>
              <member><ParameterKey>A</ParameterKey><ParameterValue>b</ParameterValue></member>
            </Parameters>
          </member>
        </Stacks>
      </DescribeStacksResult>
      <ResponseMetadata><RequestId>r</RequestId></ResponseMetadata>
    </DescribeStacksResponse>"#;
    let stack = read(&answered(200, body)).unwrap().unwrap();
    assert_eq!(stack.status, "UPDATE_COMPLETE");
    assert_eq!(stack.outputs["WebhookUrl"], "https://x.example.org/?a=1&b=2");
    assert_eq!((stack.outputs["Empty"].as_str(), stack.outputs.len()), ("", 2));
}

#[test]
fn an_answer_without_a_stack_is_none() {
    let body = "<DescribeStacksResponse><DescribeStacksResult><Stacks/></DescribeStacksResult>\
                </DescribeStacksResponse>";
    assert_eq!(read(&answered(200, body)).unwrap(), None);
    assert!(read(&answered(200, "<html/>")).is_err());
    assert!(read(&answered(200, "")).is_err());
}

#[test]
fn a_refusal_is_read_and_what_is_none_is_survived() {
    let body = "<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code>\
                <Message>Rate exceeded</Message></Error><RequestId>r</RequestId></ErrorResponse>";
    let refused = |body: &str| {
        let error = read(&answered(400, body)).unwrap_err();
        Refused(error.as_operation_error().unwrap().0.clone())
    };
    assert_eq!(refused(body).retryable_error_kind(), Some(RetryKind::ThrottlingError));
    for body in ["", "<html>no", "<ErrorResponse/>", "{}"] {
        let refused = refused(body);
        assert_eq!((refused.0.code(), refused.is_absent()), (None, false), "{body}");
    }
}

/// A call that is shown shows no credentials.
#[test]
fn a_call_shows_its_stack_alone() {
    let keys =
        aws_credential_types::Credentials::new("AKIDMARKER", "marker-secret", None, None, "test");
    let call = Call {
        endpoint: "https://example.org".to_owned(),
        region: "eu-central-1".to_owned(),
        stack: "gleaner".to_owned(),
        identity: keys.into(),
    };
    assert_eq!(format!("{call:?}"), "Call { stack: \"gleaner\", .. }");
    assert!(!format!("{:?}", call.request().unwrap()).contains("marker-secret"));
}
